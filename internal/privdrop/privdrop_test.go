//go:build linux

package privdrop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary is the program that gives up root: see TestMain.
const childEnv = "TSGTOP_TEST_PRIVDROP"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "drop":
		childDrop(Options{})
	case "serve":
		childDrop(Options{Network: true})
	case "bound":
		childBound()
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

// childDrop prints what it can and cannot do after Drop.
func childDrop(o Options) {
	// Threads that are there already must lose root, too.
	for range 8 {
		go func() {
			for {
				time.Sleep(time.Millisecond)
			}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	if err := Drop(Target(os.Getenv), o); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/status")
	for _, p := range tasks {
		b, _ := os.ReadFile(p)
		for l := range strings.Lines(string(b)) {
			switch f := strings.Fields(l); f[0] {
			case "Uid:", "Gid:", "Groups:", "CapPrm:", "CapEff:", "NoNewPrivs:", "Seccomp:":
				fmt.Println("task", strings.Join(f, " "))
			}
		}
	}
	_, err := os.ReadFile("/etc/shadow")
	fmt.Println("shadow", err != nil)
	fmt.Println("exec", exec.Command("/bin/true").Run())
	_, err = net.Dial("udp", "127.0.0.1:9")
	fmt.Println("socket", err)
}

func childBound() {
	if !Bounded() {
		fmt.Println("error:", Bound(Observing))
		os.Exit(1)
	}
	b, _ := os.ReadFile("/proc/self/status")
	for l := range strings.Lines(string(b)) {
		if strings.HasPrefix(l, "Cap") || strings.HasPrefix(l, "NoNewPrivs") {
			fmt.Print(l)
		}
	}
	fmt.Println("kept", Kept(Observing))
}

// needRoot skips where there is nothing to give up.
func needRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: there is nothing to give up")
	}
}

func child(t *testing.T, mode string, env ...string) string {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(append(os.Environ(), "SUDO_UID=", "SUDO_GID=", childEnv+"="+mode), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestDrop(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		name, mode string
		env        []string
		uid        string
		socket     bool
	}{
		{"nobody", "drop", nil, "65534", false},
		{"who ran sudo", "drop", []string{"SUDO_UID=1234", "SUDO_GID=1235"}, "1234", false},
		{"a server", "serve", nil, "65534", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := child(t, c.mode, c.env...)
			tasks := 0
			for l := range strings.Lines(out) {
				f := strings.Fields(l)
				if f[0] != "task" {
					continue
				}
				rest := strings.Join(f[2:], " ")
				switch f[1] {
				case "Uid:":
					tasks++
					if rest != strings.TrimSpace(strings.Repeat(c.uid+" ", 4)) {
						t.Errorf("a thread has user ids %s", rest)
					}
				case "Gid:":
					if strings.Contains(" "+rest+" ", " 0 ") {
						t.Errorf("a thread has group ids %s", rest)
					}
				case "Groups:":
					if rest != "" {
						t.Errorf("a thread is in groups %s", rest)
					}
				case "CapPrm:", "CapEff:":
					if v, err := strconv.ParseUint(rest, 16, 64); err != nil || v != 0 {
						t.Errorf("a thread has capabilities %s", rest)
					}
				case "NoNewPrivs:":
					if rest != "1" {
						t.Errorf("a thread could gain privileges")
					}
				case "Seccomp:":
					if rest != "2" {
						t.Errorf("a thread is not filtered")
					}
				}
			}
			if tasks < 2 {
				t.Errorf("%d threads looked at: %s", tasks, out)
			}
			if !strings.Contains(out, "shadow true") {
				t.Error("it can still read /etc/shadow")
			}
			if !strings.Contains(out, "exec fork/exec /bin/true: operation not permitted") {
				t.Errorf("it can still execute programs: %s", out)
			}
			if strings.Contains(out, "socket <nil>") != c.socket {
				t.Errorf("sockets: %s", out)
			}
		})
	}
}

func TestDropRefusesRoot(t *testing.T) {
	if err := become(Identity{UID: 0, GID: 5}); err == nil {
		t.Error("it became root, and called that giving up")
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		uid, gid string
		want     int
	}{
		{"1000", "1000", 1000}, {"", "", nobody}, {"0", "0", nobody}, {"1000", "0", nobody}, {"-1", "5", nobody},
		{"4294967295", "5", nobody}, {"x", "5", nobody},
	} {
		got := Target(func(k string) string { return map[string]string{"SUDO_UID": c.uid, "SUDO_GID": c.gid}[k] })
		if got.UID != c.want {
			t.Errorf("SUDO_UID=%q SUDO_GID=%q: user %d, want %d", c.uid, c.gid, got.UID, c.want)
		}
	}
}

func TestBound(t *testing.T) {
	needRoot(t)
	out := child(t, "bound")
	var mask uint64
	for _, c := range Observing {
		mask |= 1 << c.Number
	}
	seen := 0
	for l := range strings.Lines(out) {
		f := strings.Fields(l)
		switch f[0] {
		case "CapPrm:", "CapEff:", "CapBnd:":
			seen++
			if v, err := strconv.ParseUint(f[1], 16, 64); err != nil || v&^mask != 0 || v == 0 {
				t.Errorf("%s", l)
			}
		case "NoNewPrivs:":
			seen++
			if f[1] != "1" {
				t.Error(l)
			}
		}
	}
	if seen != 4 || !strings.Contains(out, "CAP_SYS_PTRACE") {
		t.Errorf("%s", out)
	}
}
