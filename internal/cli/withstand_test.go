package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"tsgtop/actions"
	"tsgtop/internal/sched"
	"tsgtop/probes/doctor"
)

// evil is text as a hostile process would choose it: escape codes, C1 controls,
// bidirectional and zero-width characters, line ends, broken UTF-8.
const evil = "e\x1b[2J\x1b]0;gone\x07\tvil\u202eexe\u200b\u2066\ufeff\u009b31m\u2028\x7f\x00\xff\r\nx"

// poison sets every string below v that is empty.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.String() == "" {
			v.SetString(evil)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i))
		}
	}
}

// hostile is a machine all of whose text is evil, as the probes would tell it.
func hostile() []sched.Event {
	t0 := sched.Time(1_800_000_000e9)
	tsg := sched.Object{Client: 0xc1d00001, Handle: 0x5c000015}
	u32 := func(n uint32) *uint32 { return &n }
	events := []sched.Event{
		sched.SourceInfo{Time: t0, Notes: []string{""}},
		sched.GPU{Time: t0, Runlists: []sched.Runlist{{ID: 0, Engines: []uint32{1}}}},
		sched.ProbeStatus{Time: t0, Probe: "ctxsw", GPU: 0, State: sched.ProbeLimited},
		sched.ProbeStatus{Time: t0, GPU: sched.Unknown, State: sched.ProbeMissing},
		sched.Process{Time: t0, PID: 479, Args: []string{""}},
		sched.Process{Time: t0, PID: 480, WhyNull: "", Exe: "/bin/x"},
		sched.Inventory{Start: t0, End: t0, Clients: []sched.FoundClient{{Client: tsg.Client, PID: 479}}, UnattributedChannels: 2,
			TSGs: []sched.FoundTSG{{Object: tsg, GPU: 0, Runlist: 0, Number: u32(7), Engine: u32(1), Timeslice: sched.Ptr(uint64(2048)), PID: 479}}},
		sched.TraceBatch{Time: t0 + 100, Records: []sched.TraceRecord{{Time: t0 + 50, Context: 9, PID: 480, Tag: sched.TagStart}}},
		sched.Call{Start: t0, End: t0 + 1000, PID: 479, Kind: sched.CallControl, Number: 0xa06c0103, Client: tsg.Client, Object: tsg.Handle},
		sched.CallBatch{Calls: []sched.Call{{Start: t0, End: t0 + 2000, PID: 480, Kind: sched.CallAlloc, Number: 0xa06c, Client: 5, Object: 6}}},
		sched.Xid{Time: t0 + 3000, GPU: 0, Code: 13, PID: 479},
		sched.Lifecycle{Time: t0 + 4000, ID: sched.TSGID{TSG: 7}, Object: tsg, PID: 479},
		sched.ProcessExit{Time: t0 + 5000, PID: 480},
	}
	for i, e := range events {
		v := reflect.New(reflect.TypeOf(e)).Elem()
		v.Set(reflect.ValueOf(e))
		poison(v)
		events[i] = v.Interface().(sched.Event)
	}
	return events
}

// mustBeSafe: nothing in s that a terminal acts on or a reader cannot see, line
// ends and the tool's own spaces apart.
func mustBeSafe(t *testing.T, what, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("%s: not UTF-8: %q", what, s)
	}
	for _, r := range s {
		if r != '\n' && r != ' ' && !unicode.IsPrint(r) {
			t.Errorf("%s: %U in %q", what, r, s)
			return
		}
	}
}

// stringsIn gives all strings of a decoded JSON value, keys too.
func stringsIn(v any, give func(string)) {
	switch v := v.(type) {
	case string:
		give(v)
	case []any:
		for _, x := range v {
			stringsIn(x, give)
		}
	case map[string]any:
		for k, x := range v {
			give(k)
			stringsIn(x, give)
		}
	}
}

// mustBeSafeJSON looks at the lines of JSON as they are, and at what a reader
// makes of them.
func mustBeSafeJSON(t *testing.T, what, lines string) {
	t.Helper()
	mustBeSafe(t, what, lines)
	for line := range strings.Lines(lines) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("%s: %v in %q", what, err, line)
		}
		stringsIn(v, func(s string) {
			if strings.Contains(s, "\n") {
				t.Errorf("%s: a line end in %q", what, s)
			}
			mustBeSafe(t, what, s)
		})
	}
}

// mustShow: the evil text is there, made visible; a test that never met it would
// prove nothing.
func mustShow(t *testing.T, what, s string) {
	t.Helper()
	if !strings.Contains(s, `\x1b`) && !strings.Contains(s, `\\x1b`) {
		t.Errorf("%s: the text is not in it:\n%s", what, s)
	}
}

// TestHostileTextOfProbes: what probes tell, unclean, is clean in all that is
// printed of the state.
func TestHostileTextOfProbes(t *testing.T) {
	o := &options{}
	var errs bytes.Buffer
	o.err = &errs
	b := sched.NewBoard(nil, sched.Options{})
	var lines, jsonLines strings.Builder
	untap := b.TapLines(func(l *sched.CallLine) {
		lines.WriteString(callText(l) + "\n")
		if err := writeJSON(&jsonLines, sched.LineJSON(l, func(int) string { return evil })); err != nil {
			t.Error(err)
		}
	})
	defer untap()
	b.Feed(hostile())
	snap := b.Snapshot(sched.SnapshotOptions{})
	if len(snap.TSGs) < 2 || len(snap.GPUs) != 1 {
		t.Fatalf("the state holds %d TSGs, %d GPUs", len(snap.TSGs), len(snap.GPUs))
	}
	for what, print := range map[string]func(io.Writer){
		"ls":    func(w io.Writer) { printLS(w, snap) },
		"score": func(w io.Writer) { printScore(w, snap) },
		"calls": func(w io.Writer) { io.WriteString(w, lines.String()) },
		"a check of the doctor": func(w io.Writer) {
			printCheck(w, doctor.Check{Name: evil, State: doctor.Missing, What: evil, Why: evil, Help: evil})
		},
		"an error":        func(w io.Writer) { printError(w, fail(exitUsage, "%s: %w", evil, errors.New(evil))) },
		"an error's line": func(w io.Writer) { printError(w, fmt.Errorf("unknown flag: --%s", evil)) },
		"a warning": func(w io.Writer) {
			warnings(snap, o.sayLine)
			io.WriteString(w, errs.String())
		},
		"an outcome": func(w io.Writer) {
			fmt.Fprintln(w, oneLine(outcomeLine(actions.Outcome{Target: sched.Target{PID: 5, Exe: evil}, Why: evil})))
		},
	} {
		var out bytes.Buffer
		print(&out)
		mustBeSafe(t, what, out.String())
		mustShow(t, what, out.String())
	}
	if n := strings.Count(errs.String(), "\n"); n != 2 {
		t.Errorf("%d lines of warnings, want one for each probe:\n%s", n, errs.String())
	}
	for what, v := range map[string]any{"ls --json": snap.LS(sched.Window1s), "score --json": snap.ScoreOutput(sched.Window1s)} {
		var out bytes.Buffer
		if err := writeJSON(&out, v); err != nil {
			t.Fatal(err)
		}
		mustBeSafeJSON(t, what, out.String())
		mustShow(t, what, out.String())
	}
	mustBeSafeJSON(t, "calls --json", jsonLines.String())
	mustShow(t, "calls --json", jsonLines.String())
}

// TestHostileRecording: the same from a recording that says such things itself,
// through the commands.
func TestHostileRecording(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "evil.tsg.zst")
	kinds := map[string]string{"SourceInfo": "source", "GPU": "gpu", "ProbeStatus": "probe", "Process": "process", "Inventory": "inventory",
		"Call": "call", "CallBatch": "call-batch", "Xid": "xid", "Lifecycle": "lifecycle", "ProcessExit": "process-exit"}
	var text bytes.Buffer
	header := map[string]any{"k": "header", "schema": 1, "tool": evil, "host": evil, "label": evil, "notes": []string{evil}}
	if err := writeJSON(&text, header); err != nil {
		t.Fatal(err)
	}
	for _, e := range hostile() {
		kind := kinds[reflect.TypeOf(e).Name()]
		if kind == "" {
			continue // the trace has no text
		}
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "{\"k\":%q,%s\n", kind, body[1:])
	}
	whole := text.String()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"whole": whole, "with a line that is none": whole + evil + "\n", "with a kind of another": whole + `{"k":"` + "\u202e\u200b" + `"}` + "\n"} {
		if err := os.WriteFile(path, enc.EncodeAll([]byte(content), nil), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{"ls", "ls --json", "score", "score --json", "calls", "calls --json", "record -o " + filepath.Join(dir, "copy-"+strings.ReplaceAll(name, " ", "-")),
			"export " + path + " --to json -o -", "export " + path + " --to csv -o -", "timeslice 0:0:7 200 --yes"} {
			args := strings.Fields(args)
			if args[0] != "export" {
				args = append(args, "--source", path)
			}
			code, out, errs := tsgtop(args...)
			what := fmt.Sprintf("%s, %v", name, args)
			damaged := name != "whole" || args[0] == "timeslice"
			if (code != exitOK) != damaged || code == exitInternal {
				t.Errorf("%s: code %d: %s", what, code, errs)
			}
			mustBeSafe(t, what, errs)
			if strings.Contains(strings.Join(args, " "), "json") {
				mustBeSafeJSON(t, what, out)
			} else {
				mustBeSafe(t, what, out)
			}
			if out != "" && !strings.Contains(what, "csv") { // which has no turn to tell of
				mustShow(t, what, out)
			}
			for line := range strings.Lines(errs) {
				if !strings.HasPrefix(line, "tsgtop: ") {
					t.Errorf("%s: not a message of ours: %q", what, line)
				}
			}
			if damaged && args[0] == "ls" && !strings.Contains(errs, "line ") {
				t.Errorf("%s: the error names no line: %s", what, errs)
			}
		}
	}
}

// An output that takes nothing is an error, whatever was to be printed: a script
// must not take a full disk for a machine without TSGs.
func TestOutputThatTakesNothing(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("skip: /dev/full: %v", err)
	}
	defer full.Close()
	file := filepath.Join(t.TempDir(), "r")
	if code, _, errs := tsgtop("record", "-o", file, "--source", "sim:speed=20", "--for", "50ms"); code != exitOK {
		t.Fatalf("code %d, %s", code, errs)
	}
	for _, args := range []string{"ls", "ls --json", "score", "score --json", "calls", "calls --json", "version", "doctor --json"} {
		var errs bytes.Buffer
		code := run(t.Context(), env{strings.NewReader(""), full, &errs}, append(strings.Fields(args), "--source", file))
		if code != exitUsage || !strings.Contains(errs.String(), "no space left") || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: code %d, %q", args, code, errs.String())
		}
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		in    string
		cells int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 8, []string{"one two", "three"}},
		{"a /very/long/path/that/stays b", 8, []string{"a", "/very/long/path/that/stays", "b"}},
		{"列車 列車 列車", 9, []string{"列車 列車", "列車"}},
		{"a\nb\u202ec", 20, []string{`a\nb\u202ec`}},
	} {
		if got := fold(c.in, c.cells); !reflect.DeepEqual(got, c.want) {
			t.Errorf("fold(%q, %d) = %q, want %q", c.in, c.cells, got, c.want)
		}
	}
}

// A disk that fills up ends the recording with an error; what was written before
// is good.
func TestRecordOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("skip: mount: needs to mount a small file system: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	path := filepath.Join(dir, "r")
	code, _, errs := tsgtop("record", "-o", path, "--source", "sim:speed=100,tsgs=50", "--for", "1h")
	if code != exitUsage || strings.Count(errs, "no space left") != 1 || !strings.Contains(errs, path) {
		t.Errorf("code %d, %s", code, errs)
	}
	code, out, errs := tsgtop("ls", "--source", path)
	if !strings.Contains(out, "train.py") || code != exitOK && !strings.Contains(errs, "cut off") {
		t.Errorf("what was written: code %d, %s%s", code, out, errs)
	}
}

// A signal ends what waits, without a word; of a recording nothing is printed
// that would pass for the whole.
func TestInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	if code, _, errs := tsgtop("record", "-o", file, "--source", "sim:speed=20", "--for", "100ms"); code != exitOK {
		t.Fatalf("code %d, %s", code, errs)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{"ls --source sim --for 1h", "score --source sim --for 1h", "calls --source sim", "ls --source " + file, "score --json --source " + file} {
		var out, errs bytes.Buffer
		if code := run(ended, env{strings.NewReader(""), &out, &errs}, strings.Fields(args)); code != exitInterrupted || errs.Len() > 0 || out.Len() > 0 && !strings.HasPrefix(args, "calls") {
			t.Errorf("%s: code %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}
