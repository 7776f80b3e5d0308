//go:build linux

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
)

// TestMain lets the test binary be another process that writes to a journal.
func TestMain(m *testing.M) {
	if path := os.Getenv("JOURNAL_TEST_WRITER"); path != "" {
		os.Exit(writer(path))
	}
	os.Exit(m.Run())
}

// writer holds and releases a value of its own many times.
func writer(path string) int {
	j, err := Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o, _ := Self()
	t := target(o.PID)
	for i := range 100 {
		if _, err := j.Hold(sched.OpTimeslice, t, sched.Ptr(uint64(2048)), Hold{Owner: o, Value: uint64(i)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if i%3 == 0 {
			if err := j.Release(sched.OpTimeslice, t, o, "test"); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	return 0
}

// One TSG has one entry, whoever of those that share it, and with whatever is
// known of it, a tsgtop names it by: else the first original would be lost.
func TestKey(t *testing.T) {
	a := target(7)
	a.UniqueID = sched.Ptr(uint32(0))
	b := a
	b.PID, b.Start = 8, 0
	if KeyOf(sched.OpTimeslice, a) != KeyOf(sched.OpTimeslice, b) {
		t.Error("of two processes that share it")
	}
	other := a
	other.UniqueID = sched.Ptr(uint32(1))
	if KeyOf(sched.OpTimeslice, a) == KeyOf(sched.OpTimeslice, other) || KeyOf(sched.OpTimeslice, a) == KeyOf(sched.OpInterleave, a) {
		t.Error("of another TSG or another value")
	}
	a.UniqueID, b.UniqueID = nil, nil
	if KeyOf(sched.OpTimeslice, a) == KeyOf(sched.OpTimeslice, b) {
		t.Error("without a unique id, of two processes with the same handles")
	}
}

func dir(t *testing.T) string {
	t.Helper()
	d := t.TempDir()
	if err := os.Chmod(d, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

func open(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func target(n int) sched.Target {
	return sched.Target{TSGID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}, Object: sched.Object{Client: 0xc1d00001, Handle: 0x5c000015},
		UniqueID: sched.Ptr(uint32(n)), PID: 400 + n, Start: 99}
}

func state(t *testing.T, j *Journal) State {
	t.Helper()
	s, err := j.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var a, b = Owner{PID: 10, Start: 1}, Owner{PID: 11, Start: 1}

// The first original wins, whoever changes it how often; it is restored when
// the last owner lets go.
func TestFirstOriginalWins(t *testing.T) {
	path := filepath.Join(dir(t), "journal")
	for name, j := range map[string]*Journal{"file": open(t, path), "memory": Memory()} {
		u := func(v uint64) *uint64 { return &v }
		hold := func(o Owner, original, value uint64) Entry {
			e, err := j.Hold(sched.OpTimeslice, target(1), u(original), Hold{Owner: o, Value: value, Before: original})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		hold(a, 2048, 200)
		hold(a, 200, 300)
		e := hold(b, 300, 500)
		if *e.Original != 2048 || len(e.Holds) != 2 {
			t.Fatalf("%s: %+v", name, e)
		}
		if v, force := e.Without(a); force || *v != 500 {
			t.Errorf("%s: a lets go: %v, %v", name, *v, force)
		}
		if v, force := e.Without(b); !force || *v != 300 {
			t.Errorf("%s: b lets go first: %v, %v", name, *v, force)
		}
		if err := j.Release(sched.OpTimeslice, target(1), a, ""); err != nil {
			t.Fatal(err)
		}
		e = state(t, j).Entries[0]
		if v, force := e.Without(b); !force || *v != 2048 {
			t.Errorf("%s: b lets go last: %v, %v", name, *v, force)
		}
		if err := j.Release(sched.OpTimeslice, target(1), b, ""); err != nil {
			t.Fatal(err)
		}
		if s := state(t, j); len(s.Entries) != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 0 || st.Mode().Perm() != 0o600 {
		t.Errorf("an empty journal is %+v, %v", st, err)
	}
}

// Ids that are not reused tell entries apart, where handles and numbers do not.
func TestEntriesByUniqueID(t *testing.T) {
	j := open(t, filepath.Join(dir(t), "journal"))
	for n := 1; n <= 3; n++ {
		if _, err := j.Hold(sched.OpTimeslice, target(n), sched.Ptr(uint64(n)), Hold{Owner: a}); err != nil {
			t.Fatal(err)
		}
	}
	j.Hold(sched.OpInterleave, target(1), nil, Hold{Owner: a, Value: 2})
	j.Keep(sched.OpTimeslice, target(2), a)
	s := state(t, j)
	if len(s.Entries) != 4 || !s.Entries[1].Holds[0].Kept || s.Entries[0].Holds[0].Kept || s.Entries[3].Original != nil {
		t.Errorf("%+v", s.Entries)
	}
	if err := j.Meter(a, true); err != nil {
		t.Fatal(err)
	}
	if s := state(t, j); s.Meter == nil || *s.Meter != a {
		t.Errorf("meter %+v", s.Meter)
	}
}

// Lines of an earlier boot are void, and lines that a crash cut short do not
// hide others.
func TestStaleAndTornLines(t *testing.T) {
	path := filepath.Join(dir(t), "journal")
	j := open(t, path)
	j.Hold(sched.OpTimeslice, target(1), sched.Ptr(uint64(2048)), Hold{Owner: a, Value: 200})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Replace(good, []byte(j.boot), []byte("00000000-0000-0000-0000-000000000000"), 1)
	old = bytes.Replace(old, []byte(`"unique":1`), []byte(`"unique":77`), 1)
	torn := good[:len(good)/2]
	if err := os.WriteFile(path, bytes.Join([][]byte{old, []byte("{}\n"), good, torn}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s := state(t, j)
	if len(s.Entries) != 1 || *s.Entries[0].Target.UniqueID != 1 || s.Stale != 1 || s.Unreadable != 2 {
		t.Fatalf("%+v", s)
	}
	// The next line does not run into the torn one.
	if _, err := j.Hold(sched.OpTimeslice, target(2), sched.Ptr(uint64(1)), Hold{Owner: a, Value: 2}); err != nil {
		t.Fatal(err)
	}
	if s := state(t, j); len(s.Entries) != 2 {
		t.Errorf("%+v", s)
	}
}

// Links, others' files and folders that others can write to are refused.
func TestUnsafeFiles(t *testing.T) {
	secret := filepath.Join(dir(t), "secret")
	os.WriteFile(secret, []byte("the root password"), 0o600)
	for name, prepare := range map[string]func(d string) error{
		"link":        func(d string) error { return os.Symlink(secret, filepath.Join(d, "journal")) },
		"hard link":   func(d string) error { return os.Link(secret, filepath.Join(d, "journal")) },
		"fifo":        func(d string) error { return unix.Mkfifo(filepath.Join(d, "journal"), 0o600) },
		"folder":      func(d string) error { return os.Mkdir(filepath.Join(d, "journal"), 0o700) },
		"open folder": func(d string) error { return os.Chmod(d, 0o777) },
		"writable by group": func(d string) error {
			f := filepath.Join(d, "journal")
			os.WriteFile(f, nil, 0o600)
			return os.Chmod(f, 0o620)
		},
		"lock is a link": func(d string) error { return os.Symlink(secret, filepath.Join(d, "journal.lock")) },
	} {
		d := filepath.Join(dir(t), "d")
		os.Mkdir(d, 0o700)
		if err := prepare(d); err != nil {
			t.Fatal(err)
		}
		j, err := Open(filepath.Join(d, "journal"))
		if err == nil {
			j.Close()
			t.Errorf("%s: opened", name)
		} else if strings.Contains(err.Error(), "password") {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
	}
	d := dir(t)
	if os.Geteuid() == 0 {
		os.Chown(d, 1234, 1234)
		if _, err := Open(filepath.Join(d, "journal")); err == nil || !strings.Contains(err.Error(), "1234") {
			t.Errorf("a folder of another user's: %v", err)
		}
	}
	link := filepath.Join(dir(t), "l")
	os.Symlink(dir(t), link)
	if _, err := Open(filepath.Join(link, "journal")); err == nil {
		t.Error("a folder that is a link was followed")
	}
}

// Several processes and goroutines write at once, and nothing is lost or torn.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(dir(t), "journal")
	j := open(t, path)
	const n = 6
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "JOURNAL_TEST_WRITER="+path)
			c.Stderr = os.Stderr
			if err := c.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := state(t, j)
	// The last of each is released, since 99 is a multiple of 3.
	if len(s.Entries) != 0 || s.Unreadable != 0 {
		t.Errorf("%d entries are left, %d lines torn", len(s.Entries), s.Unreadable)
	}
}

// The file does not grow for ever, and compaction keeps what is held.
func TestCompaction(t *testing.T) {
	path := filepath.Join(dir(t), "journal")
	j := open(t, path)
	j.Hold(sched.OpTimeslice, target(1), sched.Ptr(uint64(2048)), Hold{Owner: a, Value: 7})
	j.Hold(sched.OpTimeslice, target(1), nil, Hold{Owner: b, Value: 8})
	j.Meter(b, true)
	for i := range 400 {
		j.Hold(sched.OpTimeslice, target(2), sched.Ptr(uint64(1)), Hold{Owner: a, Value: uint64(i)})
	}
	st, err := os.Stat(path)
	if err != nil || st.Size() > compactOver+1024 {
		t.Fatalf("%d bytes, %v", st.Size(), err)
	}
	s := state(t, j)
	if len(s.Entries) != 2 || len(s.Entries[0].Holds) != 2 || *s.Entries[0].Original != 2048 || s.Entries[1].Holds[0].Value != 399 || s.Meter == nil || *s.Meter != b {
		t.Errorf("%+v", s)
	}
}

// One command at a time for each TSG, machine-wide; and one meter.
func TestLocks(t *testing.T) {
	path := filepath.Join(dir(t), "journal")
	j, other := open(t, path), open(t, path)
	unlock, err := j.LockTSG(target(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []*Journal{j, other} {
		if _, err := k.LockTSG(target(1)); !errors.Is(err, ErrBusy) {
			t.Errorf("locked twice: %v", err)
		}
	}
	if free, err := other.LockTSG(target(2)); err != nil {
		t.Errorf("another TSG: %v", err)
	} else {
		free()
	}
	meter, err := j.LockMeter()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.LockMeter(); !errors.Is(err, ErrBusy) {
		t.Errorf("the meter: %v", err)
	}
	// The journal can be written while a TSG is locked.
	if _, err := other.Hold(sched.OpTimeslice, target(3), nil, Hold{Owner: b}); err != nil {
		t.Error(err)
	}
	unlock()
	unlock()
	meter()
	if free, err := other.LockTSG(target(1)); err != nil {
		t.Errorf("after it was freed: %v", err)
	} else {
		free()
	}
}

// A disk that is full: the hold is refused, and what was written before stays
// readable.
func TestDiskFull(t *testing.T) {
	d := smallDisk(t)
	j := open(t, filepath.Join(d, "journal"))
	var err error
	held := 0
	for i := range 2000 {
		if _, err = j.Hold(sched.OpTimeslice, target(i), sched.Ptr(uint64(1)), Hold{Owner: a, Value: 2}); err != nil {
			break
		}
		held++
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("after %d entries: %v", held, err)
	}
	if s := state(t, j); len(s.Entries) != held || s.Unreadable != 0 {
		t.Errorf("%d entries of %d, %d lines torn", len(s.Entries), held, s.Unreadable)
	}
}

// smallDisk mounts a disk of 64 KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	d := dir(t)
	if err := unix.Mount("none", d, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		if os.Geteuid() == 0 && !errors.Is(err, unix.EPERM) {
			t.Fatal(err)
		}
		t.Skip("skip: mount: a small disk needs CAP_SYS_ADMIN")
	}
	t.Cleanup(func() { unix.Unmount(d, unix.MNT_DETACH) })
	return d
}

func TestAlive(t *testing.T) {
	o, err := Self()
	if err != nil || !o.Alive() {
		t.Fatalf("%+v, %v", o, err)
	}
	o.Start++
	if o.Alive() {
		t.Error("a process of another start time is taken for it")
	}
	// One that has ended and was not waited for.
	c := exec.Command("/bin/true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		if _, state, _ := ParseStart("", b); state == 'Z' {
			break
		}
		if i > 5000 {
			t.Fatal("/bin/true does not end")
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := ProcessStart(c.Process.Pid); err == nil {
		t.Error("a process that has ended is alive")
	}
	c.Wait()
	for text, want := range map[string]uint64{
		"7 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20":    4242,
		"7 (a) b) c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 7 20": 7,
		"7 (x) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20":    4242,
		"": 0, ")": 0, "7 (x": 0, "7 (x) S 1 2": 0,
	} {
		if got, _, err := ParseStart("stat", []byte(text)); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"boot":"x","do":"hold","op":"timeslice","target":{"gpu":0},"hold":{"pid":1}}` + "\n"))
	f.Add([]byte(`{"boot":"x","do":"release"}` + "\n{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parse(b, "x")
		for i := range s.Entries {
			if len(s.Entries[i].Holds) == 0 {
				t.Errorf("an entry that nobody holds: %+v", s.Entries[i])
			}
			s.Entries[i].Without(a)
		}
	})
}
