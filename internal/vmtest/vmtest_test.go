package vmtest

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestParseKernel(t *testing.T) {
	for _, c := range []struct{ in, series, arch string }{
		{"6.12", "6.12", "amd64"}, {"6.1", "6.1", "amd64"}, {"6.12-arm64", "6.12", "arm64"},
		{"six", "", ""}, {"6.12-mips", "", ""}, {"", "", ""}, {"6.12-", "", ""},
	} {
		series, arch, err := ParseKernel(c.in)
		if series != c.series || c.series != "" && arch != c.arch || (err != nil) != (c.series == "") {
			t.Errorf("%q: %q %q %v", c.in, series, arch, err)
		}
	}
}

func TestParseReport(t *testing.T) {
	const good = "=== RUN   TestA\r\n--- PASS: TestA (0.01s)\r\n    --- PASS: TestA/x (0.01s)\r\n--- SKIP: TestB (0.00s)\r\nPASS\r\nVMTEST FILE dmesg aGk=\r\nVMTEST END rc=0\r\n"
	for _, c := range []struct {
		name, result, console string
		passed, failed        int
		problem               string
	}{
		{"good", good, "[    1.0] Linux version", 2, 0, ""},
		{"a failure", strings.Replace(strings.Replace(good, "PASS: TestA ", "FAIL: TestA ", 1), "rc=0", "rc=1", 1), "", 1, 1, ""},
		{"no end", strings.Replace(good, "VMTEST END rc=0", "", 1), "", 2, 0, "no end marker"},
		{"died without a failure", strings.Replace(good, "rc=0", "rc=1", 1), "", 2, 0, "rc=1"},
		{"panic", good, "[    5.0] Kernel panic - not syncing: x", 2, 0, "Kernel panic"},
		{"warning", good, "[    5.0] WARNING: CPU: 0 PID: 1 at x", 2, 0, "WARNING: CPU"},
		{"oops", good, "[    5.0] BUG: kernel NULL pointer dereference", 2, 0, "NULL pointer"},
		{"taint only", good, "[    5.0] nvidia: module verification failed: signature and/or required key missing", 2, 0, ""},
		{"damaged file", strings.Replace(good, "aGk=", "a*", 1), "", 2, 0, "damaged"},
		{"nothing", "", "", 0, 0, "no end marker"},
	} {
		r := Parse([]byte(c.result), []byte(c.console))
		all := strings.Join(r.Problems, "\n")
		if len(r.Passed) != c.passed || len(r.Failed) != c.failed || (c.problem == "") != (all == "") || !strings.Contains(all, c.problem) {
			t.Errorf("%s: %+v", c.name, r)
		}
		if r.OK() != (c.failed == 0 && c.problem == "") {
			t.Errorf("%s: OK is %v", c.name, r.OK())
		}
	}
	both := Parse([]byte(good), []byte("[ 1.0] WARNING: CPU: 0 at x\n[ 1.0] WARNING: CPU: 0 at x\n"))
	if len(both.Problems) != 1 {
		t.Errorf("one line twice makes one problem: %q", both.Problems)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("--- PASS: T (0s)\nVMTEST END rc=0\n"), []byte("BUG: "))
	f.Fuzz(func(t *testing.T, a, b []byte) { Parse(a, b) })
}

// TestInitramfs has cpio read what was written.
func TestInitramfs(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("no cpio here to read the archive with")
	}
	i := NewInitramfs()
	i.Add("init", []byte("hello"), 0o755)
	i.Add("a/b/c.ko", bytes.Repeat([]byte("x"), 1001), 0o644)
	cmd := exec.Command("cpio", "-itv", "--quiet")
	cmd.Stdin = bytes.NewReader(i.Bytes())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"-rwxr-xr-x", "crw-------", "a/b/c.ko", "1001", "dev/console", "drwxr-xr-x"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the archive lacks %q:\n%s", want, out)
		}
	}
}

// fakeKernel is an ELF file as far as extractVMLinux looks, in some noise.
func fakeKernel() []byte {
	b := make([]byte, 3<<20)
	copy(b, "\x7fELF")
	for i := 4; i < len(b); i += 7 {
		b[i] = byte(i / 1000)
	}
	return b
}

func TestExtractZstd(t *testing.T) {
	k := fakeKernel()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bz := append([]byte("stub \x28\xb5\x2f\xfd not a frame"), e.EncodeAll(k, nil)...)
	got, err := extractVMLinux(append(bz, "tail after the frame"...))
	if err != nil || !bytes.Equal(got[:len(k)], k) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// lz4Legacy packs b as literals only, in blocks, as `lz4 -l` frames them.
func lz4Legacy(b []byte) []byte {
	out := []byte{0x02, 0x21, 0x4c, 0x18}
	for len(b) > 0 {
		n := min(len(b), 8<<20)
		var blk []byte
		blk = append(blk, 0xf0)
		for rest := n - 15; ; rest -= 255 {
			if rest < 255 {
				blk = append(blk, byte(rest))
				break
			}
			blk = append(blk, 255)
		}
		blk = append(blk, b[:n]...)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(blk)))
		out = append(out, blk...)
		b = b[n:]
	}
	return out
}

func TestExtractLZ4(t *testing.T) {
	k := fakeKernel()
	got, err := extractVMLinux(append([]byte("stub"), lz4Legacy(k)...))
	if err != nil || !bytes.Equal(got, k) {
		t.Errorf("literals: %d bytes, %v", len(got), err)
	}
	// a match that overlaps itself: "ab" and then 10 bytes from 2 back
	out, err := lz4Block(nil, []byte{0x26, 'a', 'b', 2, 0})
	if err != nil || string(out) != "abababababab" {
		t.Errorf("match: %q, %v", out, err)
	}
	if _, err := lz4Block(nil, []byte{0x10, 'a', 9, 0}); err == nil {
		t.Error("a match before the block was taken")
	}
	if _, err := extractVMLinux([]byte("no kernel in here")); err == nil {
		t.Error("a kernel was found in nothing")
	}
}

func FuzzLZ4Block(f *testing.F) {
	f.Add([]byte{0x26, 'a', 'b', 2, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<12 {
			lz4Block(nil, b)
		}
	})
}

// TestModuleDigest: a module is built again when a source, a flag or the tool
// that adds BTF changes, and only then.
func TestModuleDigest(t *testing.T) {
	repo := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("m/a.c", "1")
	write("m/Kbuild", "obj-m := a.o")
	write("s/btf.sh", "x")
	m, k := Module{File: "a", Source: "m", BTFTool: "s/btf.sh"}, &Kernel{Release: "1"}
	sum := func() string {
		t.Helper()
		s, err := m.digest(k, repo)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := sum()
	write("m/a.o", "built")
	if sum() != first {
		t.Error("what is built changes the digest")
	}
	for what, change := range map[string]func(){
		"a source": func() { write("m/a.c", "2") },
		"the tool": func() { write("s/btf.sh", "y") },
		"a flag":   func() { m.CFlags = []string{"-DX"} },
		"a kernel": func() { k.Release = "2" },
	} {
		before := sum()
		change()
		if sum() == before {
			t.Errorf("%s does not change the digest", what)
		}
	}
}
