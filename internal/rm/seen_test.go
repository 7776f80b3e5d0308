package rm

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// unnamed are controls that the programs issue and that no public header of
// the driver names: they print as hex.
var unnamed = map[uint32]bool{
	0x2080a612: true, 0x2080a618: true, 0x2080a61d: true, 0x20809009: true, 0x20809064: true,
	0x20810108: true, 0x20808159: true, 0x20808162: true, 0x20809038: true,
}

func TestCallsOfCUDAAreNamed(t *testing.T) {
	f, err := os.Open("testdata/cuda_start.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	lines := 0
	for sc.Scan() {
		kind, hex, ok := strings.Cut(sc.Text(), " ")
		if !ok || kind == "#" {
			continue
		}
		lines++
		n64, err := strconv.ParseUint(hex, 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		n := uint32(n64)
		name := ClassName(n)
		if kind == "control" {
			name = ControlName(n)
		}
		if bare := strings.HasPrefix(name, "0x"); bare != (kind == "control" && unnamed[n]) {
			t.Errorf("%s %#x is %q", kind, n, name)
		}
	}
	if lines < 90 {
		t.Errorf("only %d lines", lines)
	}
}
