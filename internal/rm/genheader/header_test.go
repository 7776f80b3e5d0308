package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestCommittedHeaderIsWhatTheGeneratorMakes(t *testing.T) {
	const path = "../../../bpf/rm_abi.h"
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, header()) {
		t.Errorf("%s differs from what package rm says: run go run ./internal/rm/genheader", path)
	}
}

func TestHeaderHasEveryNameOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range strings.Split(string(header()), "\n") {
		rest, ok := strings.CutPrefix(l, "#define ")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(strings.Replace(rest, "(", " ", 1), " ")
		if seen[name] {
			t.Errorf("%s is defined twice", name)
		}
		seen[name] = true
	}
	for _, want := range []string{"TSGTOP_ESC_CONTROL", "TSGTOP_OFF_CHANNEL_ALLOC_CONTEXT_ID", "TSGTOP_SIZE_ALLOC64", "TSGTOP_SHAPING_CLASSES"} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestUpperSnake(t *testing.T) {
	for in, want := range map[string]string{
		"Client":           "CLIENT",
		"SrcClient":        "SRC_CLIENT",
		"ECCErrorNotifier": "ECC_ERROR_NOTIFIER",
		"TimesliceUS":      "TIMESLICE_US",
		"USERDMemory":      "USERD_MEMORY",
		"OSPidInfo":        "OS_PID_INFO",
		"FD":               "FD",
	} {
		if got := upperSnake(in); got != want {
			t.Errorf("upperSnake(%q) = %q, want %q", in, got, want)
		}
	}
}
