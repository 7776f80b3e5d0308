//go:build linux

package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tsgtop/internal/sched"
)

func dir(t *testing.T) string {
	t.Helper()
	d := t.TempDir()
	if err := os.Chmod(d, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// A command's lines: who, what, on what, old and new, the lamps, how long.
func TestLines(t *testing.T) {
	path := filepath.Join(dir(t), "tsgtop", "audit.jsonl")
	l, err := Open(path, "1.0")
	if err != nil {
		t.Fatal(err)
	}
	c := sched.Command{ID: "c1", Op: sched.OpTimeslice, Target: sched.Target{TSGID: sched.TSGID{TSG: 7}, PID: 479, Exe: "/bin/x\x1b[2J\n{}"},
		New: sched.Ptr(uint64(200)), Asked: 1e9, Time: 2.5e9, Ran: sched.Lamp{State: sched.LampYes, Why: "seen"}}
	for _, e := range []Event{Intent, Result} {
		if err := l.Write(OfCommand(e, c)); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) != 2 || strings.Contains(string(b), "\x1b") {
		t.Fatalf("%q", b)
	}
	var got []Line
	for _, s := range lines {
		var x Line
		if err := json.Unmarshal([]byte(s), &x); err != nil {
			t.Fatal(err)
		}
		got = append(got, x)
	}
	r := got[1]
	if got[0].Event != Intent || got[0].Ran != nil || r.Event != Result || r.ID != "c1" || r.SchemaVersion != 1 || r.Ran.State != sched.LampYes ||
		r.TookMS == nil || *r.TookMS != 1500 || r.Old != nil || *r.New != 200 || r.Target.PID != 479 || r.PID != os.Getpid() || r.Tool != "1.0" || r.Time == "" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(lines[1], `"old":null`) {
		t.Errorf("an old value that is not known is not null: %s", lines[1])
	}
	for _, p := range []string{path, filepath.Dir(path)} {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", p, st.Mode(), err)
		}
	}
}

// No link is followed, and nothing is written where others can write.
func TestUnsafePaths(t *testing.T) {
	d := dir(t)
	secret := filepath.Join(d, "secret")
	os.WriteFile(secret, []byte("x"), 0o600)
	os.Symlink(secret, filepath.Join(d, "audit"))
	open := filepath.Join(dir(t), "open")
	os.Mkdir(open, 0o700)
	os.Chmod(open, 0o777)
	for _, path := range []string{filepath.Join(d, "audit"), filepath.Join(open, "audit"), "/dev/null", filepath.Join(d, "no", "such", "folder")} {
		if l, err := Open(path, ""); err == nil {
			l.Close()
			t.Errorf("%s: opened", path)
		}
	}
	if b, _ := os.ReadFile(secret); string(b) != "x" {
		t.Errorf("the link's target was written: %q", b)
	}
}

// Many at once: every line whole.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(dir(t), "audit")
	var wg sync.WaitGroup
	for range 8 {
		l, err := Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer l.Close()
			for range 20 {
				if err := l.Write(Line{Event: Intent, Why: strings.Repeat("x", 3000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s := range strings.Lines(string(b)) {
		if !json.Valid([]byte(s)) {
			t.Fatalf("a torn line: %.80q", s)
		}
		n++
	}
	if n != 160 {
		t.Errorf("%d lines of 160", n)
	}
	var none *Log
	if err := none.Write(Line{}); err != nil || none.Path() != "" || none.Close() != nil {
		t.Error("no log is not silent")
	}
}

// Who it was, behind sudo too, from a /proc of a test's own.
func TestWho(t *testing.T) {
	proc := t.TempDir()
	add := func(pid, ppid int, comm string, files map[string]string) {
		d := filepath.Join(proc, pidText(pid))
		os.MkdirAll(filepath.Join(d, "fd"), 0o700)
		all := map[string]string{"comm": comm + "\n", "stat": pidText(pid) + " (" + comm + ") S " + pidText(ppid) + " 1 1 34817 0 0"}
		for k, v := range files {
			all[k] = v
		}
		for k, v := range all {
			os.WriteFile(filepath.Join(d, k), []byte(v), 0o600)
		}
	}
	add(50, 40, "tsgtop", map[string]string{"loginuid": "0", "environ": "PATH=/bin\x00"})
	add(40, 30, "sudo) x", map[string]string{"environ": "PATH=/bin\x00SUDO=1\x00"})
	add(30, 20, "bash", map[string]string{"environ": "HOME=/\x00SSH_CONNECTION=192.0.2.7 5022 10.0.0.1 22\x00"})
	add(20, 1, "sshd", nil)
	os.Symlink("/dev/pts/3", filepath.Join(proc, "50", "fd", "0"))
	w := whois(proc, 50, 0, func(k string) string { return map[string]string{"SUDO_USER": "ada"}[k] })
	if w.UID != 0 || w.SudoUser != "ada" || w.LoginUID == nil || *w.LoginUID != 0 || w.TTY != "/dev/pts/3" || w.SSHFrom != "192.0.2.7 5022" ||
		w.SSHSource != "environment of pid 30" || w.Parents != "sudo) x < bash < sshd" {
		t.Errorf("%+v", w)
	}
	add(60, 1, "tsgtop", map[string]string{"loginuid": "4294967295", "environ": "SSH_CONNECTION=" + strings.Repeat("1 ", 500) + "\x00"})
	w = whois(proc, 60, 0, func(string) string { return "" })
	if w.LoginUID != nil || w.SSHFrom != "" || w.TTY != "/dev/pts/1" {
		t.Errorf("%+v", w)
	}
	if w := Whoami(); w.UID != os.Getuid() {
		t.Errorf("%+v", w)
	}
}

func pidText(n int) string { b, _ := json.Marshal(n); return string(b) }
