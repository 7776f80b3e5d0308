package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

const (
	hex64 = "3f29c8a1d2b4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e"
	short = "3f29c8a1d2b4"
	uid   = "8f0d4a6e-52c1-4b7e-9a3d-1c2b3a495867"
)

func TestUnit(t *testing.T) {
	under := strings.ReplaceAll(uid, "-", "_")
	for path, want := range map[string]string{
		"":  "",
		"/": "",
		// systemd
		"/system.slice/nvidia-persistenced.service":                                   "systemd:nvidia-persistenced.service",
		"/user.slice/user-1000.slice/session-3.scope":                                 "systemd:session-3.scope",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/app-train-7.scope":   "systemd:app-train-7.scope",
		"/user.slice/user-1000.slice/user@1000.service/tmux-spawn-1.scope/sub/folder": "systemd:tmux-spawn-1.scope",
		"/system.slice/system-serial\\x2dgetty.slice/serial-getty@ttyS0.service":      "systemd:serial-getty@ttyS0.service",
		"/init.scope":                    "systemd:init.scope",
		"/user.slice/user-1000.slice":    "",
		"/host_agent/7b4c123679dd353578": "",
		// docker
		"/system.slice/docker-" + hex64 + ".scope":        "docker:" + short,
		"/docker/" + hex64:                                "docker:" + short,
		"/docker/" + hex64 + "/system.slice/cron.service": "docker:" + short,
		"/docker-ce/docker/" + hex64:                      "docker:" + short,
		"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + hex64 + ".scope": "docker:" + short,
		"/../../docker-" + hex64 + ".scope":                                                   "docker:" + short,
		// podman
		"/machine.slice/libpod-" + hex64 + ".scope":                                                                   "podman:" + short,
		"/machine.slice/libpod-" + hex64 + ".scope/container":                                                         "podman:" + short,
		"/machine.slice/libpod-conmon-" + hex64 + ".scope":                                                            "podman:" + short,
		"/libpod_parent/libpod-" + hex64:                                                                              "podman:" + short,
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + hex64 + ".scope/libpod-payload-" + hex64: "podman:" + short,
		// containerd, CRI-O
		"/default/" + hex64:                         "containerd:" + short,
		"/system.slice/nerdctl-" + hex64 + ".scope": "containerd:" + short,
		"/system.slice/crio-" + hex64 + ".scope":    "crio:" + short,
		"/some/parent/" + hex64:                     "container:" + short,
		// Kubernetes
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice/cri-containerd-" + hex64 + ".scope":                                                            "k8s:8f0d4a6e",
		"/kubepods.slice/kubepods-pod" + under + ".slice/crio-" + hex64 + ".scope":                                                                                                         "k8s:8f0d4a6e",
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + under + ".slice/docker-" + hex64 + ".scope":                                                                  "k8s:8f0d4a6e",
		"/kubepods/burstable/pod" + uid + "/" + hex64:                                                                                                                                      "k8s:8f0d4a6e",
		"/kubepods/besteffort/pod" + strings.ReplaceAll(uid, "-", "") + "/" + hex64:                                                                                                        "k8s:8f0d4a6e",
		"/kubelet/kubepods/pod" + uid + "/" + hex64:                                                                                                                                        "k8s:8f0d4a6e",
		"/docker/" + hex64 + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + under + ".slice/cri-containerd-" + hex64 + ".scope": "k8s:8f0d4a6e",
		"/system.slice/kubelet.service": "systemd:kubelet.service",
		// Slurm
		"/slurm/uid_1000/job_4711/step_0/task_0":                                       "slurm:4711",
		"/slurm_dgx-07/uid_1000/job_4711/step_batch":                                   "slurm:4711",
		"/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0":                   "slurm:4711",
		"/system.slice/dgx-07_slurmstepd.scope/job_4711/step_extern/user/task_special": "slurm:4711",
		"/system.slice/slurmd.service":                                                 "systemd:slurmd.service",
		"/home/job_4711":                                                               "",
		// LXC, nspawn, virtual machines
		"/lxc.payload.web/system.slice/nginx.service":             "lxc:web",
		"/lxc/web/init.scope":                                     "lxc:web",
		"/machine.slice/systemd-nspawn@build.service/payload":     "machine:build",
		"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/emulator": "machine:qemu\\x2d1\\x2dvm",
		// names made to mislead
		"/docker-zz.scope": "systemd:docker-zz.scope",
		"/docker/short":    "",
		"/pod" + uid:       "",
		"/kubepods/podx":   "",
		"/lxc.payload.":    "",
		"/slurm/job_x":     "",
	} {
		if got := Unit(path); got != want {
			t.Errorf("Unit(%q) = %q, want %q", path, got, want)
		}
	}
}

func statLine(comm string, start string) string {
	return "479 (" + comm + ") S 1 479 479 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 14 0 " + start + " 1234 56 18446744073709551615 1 1 0 0\n"
}

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       stat
		bad        bool
	}{
		{name: "plain", line: statLine("python3", "8217"), want: stat{"python3", 'S', 8217}},
		{name: "spaces", line: statLine("tmux: server", "8217"), want: stat{"tmux: server", 'S', 8217}},
		{name: "a parenthesis", line: statLine("a) R 1 2 3", "8217"), want: stat{"a) R 1 2 3", 'S', 8217}},
		{name: "only parentheses", line: statLine(")((", "8217"), want: stat{")((", 'S', 8217}},
		{name: "a line end", line: statLine("a\nb) Z 9", "8217"), want: stat{"a\nb) Z 9", 'S', 8217}},
		{name: "empty name", line: statLine("", "18446744073709551615"), want: stat{"", 'S', 1<<64 - 1}},
		{name: "cut short", line: "479 (python3) S 1 2 3", bad: true},
		{name: "no name", line: "479 python3 S 1", bad: true},
		{name: "no number", line: statLine("x", "soon"), bad: true},
		{name: "empty", line: "", bad: true},
	} {
		got, err := parseStat([]byte(c.line))
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got := parseStatus([]byte("Name:\tx\\nUid:\\t0\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t479\t17\t1\nThreads:\t3\n"))
	if got.uid == nil || *got.uid != 1001 || !reflect.DeepEqual(got.nspid, []int{479, 17, 1}) {
		t.Errorf("%+v", got)
	}
	if got := parseStatus([]byte("Uid:\t-1\nNSpid:\tx\n")); got.uid != nil || got.nspid != nil {
		t.Errorf("%+v", got)
	}
}

func TestParseCgroup(t *testing.T) {
	for in, want := range map[string]string{
		"0::/system.slice/a.service\n": "/system.slice/a.service",
		"0::/a:b:c\n":                  "/a:b:c",
		"12:pids:/docker/x\n1:name=systemd:/docker/x\n0::/\n": "/docker/x",
		"4:memory:/host_agent/7b\n1:name=systemd:/\n0::/\n":   "/host_agent/7b",
		"4:memory:/\n0::/\n":  "/",
		"0::/../../x.scope\n": "/../../x.scope",
		"":                    "",
		"nonsense\n":          "",
	} {
		if got := parseCgroup([]byte(in)); got != want {
			t.Errorf("parseCgroup(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseArgs(t *testing.T) {
	if got := parseArgs([]byte("python3\x00train.py\x00\x00--x\x00")); !reflect.DeepEqual(got, []string{"python3", "train.py", "", "--x"}) {
		t.Errorf("%q", got)
	}
	if got := parseArgs(nil); got != nil {
		t.Errorf("%q", got)
	}
	total := 0
	got := parseArgs([]byte("x\x00" + strings.Repeat("y", 60000) + "\x00z"))
	for _, a := range got {
		total += len(a)
	}
	if total > maxString+3 || got[len(got)-1] != "..." {
		t.Errorf("%d bytes, the last %q", total, got[len(got)-1])
	}
	if got := parseArgs([]byte(strings.Repeat("a\x00", 2000))); len(got) != maxArgs+1 {
		t.Errorf("%d arguments", len(got))
	}
}

func TestParsePasswd(t *testing.T) {
	got := parsePasswd(strings.NewReader("root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\n# c:x:5:\nada:x:1000:1000:,,,:/home/ada:/bin/sh\n+::::::\nbad:x:y:1\n"))
	if !reflect.DeepEqual(got, map[int]string{0: "root", 1000: "ada"}) {
		t.Errorf("%v", got)
	}
}

// fakeProc is a folder that looks like /proc.
type fakeProc struct {
	t    *testing.T
	root string
}

func (f fakeProc) process(pid int, files map[string]string) {
	f.t.Helper()
	dir := filepath.Join(f.root, strconv.Itoa(pid))
	if err := os.MkdirAll(filepath.Join(dir, "ns"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	for name, body := range files {
		path := filepath.Join(dir, name)
		os.Remove(path)
		var err error
		if name == "exe" || name == "ns/pid" {
			err = os.Symlink(body, path)
		} else {
			err = os.WriteFile(path, []byte(body), 0o644)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

func newFake(t *testing.T, o Options) (fakeProc, *Watcher) {
	f := fakeProc{t, t.TempDir()}
	o.Root, o.Passwd = f.root, filepath.Join(f.root, "passwd")
	if err := os.WriteFile(o.Passwd, []byte("ada:x:1000:1000::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return f, New(o)
}

func TestDescribe(t *testing.T) {
	f, w := newFake(t, Options{Args: true})
	f.process(479, map[string]string{"stat": statLine("python3", "8217"), "exe": "/usr/bin/python3.11", "cmdline": "python3\x00train.py\x00",
		"status": "Uid:\t1000\t1000\t1000\t1000\nNSpid:\t479\t1\n", "cgroup": "0::/system.slice/docker-" + hex64 + ".scope\n"})
	got := w.Describe(479)
	if got.Time == 0 {
		t.Error("no time")
	}
	got.Time = 0
	want := sched.Process{PID: 479, NSPID: 1, Start: 8217, Exe: "/usr/bin/python3.11", Comm: "python3", UID: sched.Ptr(1000), User: "ada",
		Cgroup: "/system.slice/docker-" + hex64 + ".scope", Unit: "docker:" + short, Args: []string{"python3", "train.py"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	f.process(479, map[string]string{"exe": "/other"})
	if got := w.Describe(479); got.Exe != "/usr/bin/python3.11" {
		t.Errorf("read again: %+v", got)
	}
	f.process(479, map[string]string{"stat": statLine("bash", "8217")}) // exec
	if got := w.Describe(479); got.Exe != "/other" || got.Comm != "bash" {
		t.Errorf("after an exec: %+v", got)
	}
	f.process(479, map[string]string{"stat": statLine("bash", "9999"), "exe": "/third"}) // another process
	if got := w.Describe(479); got.Exe != "/third" || got.Start != 9999 {
		t.Errorf("after the number was used again: %+v", got)
	}
	if !w.Alive(479, 9999) || w.Alive(479, 8217) || w.Alive(480, 1) {
		t.Error("Alive does not go by the start time")
	}
	if err := os.RemoveAll(filepath.Join(f.root, "479")); err != nil {
		t.Fatal(err)
	}
	if got := w.Describe(479); got.Exe != "/third" || got.Gone {
		t.Errorf("ended, and remembered: %+v", got)
	}
	w.Forget(479)
	if got := w.Describe(479); !got.Gone || got.Exe != "" || got.WhyNull == "" {
		t.Errorf("ended, and forgotten: %+v", got)
	}
}

func TestDescribeWhatCannotBeRead(t *testing.T) {
	f, w := newFake(t, Options{})
	f.process(2, map[string]string{"stat": statLine("kthreadd", "0"), "status": "Uid:\t0\t0\t0\t0\n", "cgroup": "0::/\n"})
	if got := w.Describe(2); got.Exe != "" || !strings.Contains(got.WhyNull, "thread of the kernel") || got.UID == nil || *got.UID != 0 {
		t.Errorf("a kernel thread: %+v", got)
	}
	f.process(3, map[string]string{"stat": strings.Replace(statLine("dead", "5"), ") S", ") Z", 1), "status": "", "cgroup": "0::/\n"})
	if got := w.Describe(3); !strings.Contains(got.WhyNull, "waits for its parent") || got.UID != nil {
		t.Errorf("a zombie: %+v", got)
	}
	f.process(4, map[string]string{"stat": "garbage"})
	if got := w.Describe(4); got.WhyNull == "" || got.Start != 0 || got.Gone {
		t.Errorf("garbage: %+v", got)
	}
	f.process(5, map[string]string{"stat": statLine(strings.Repeat("x", 50000), "5"), "cgroup": "0::/" + strings.Repeat("y", 60000), "status": "", "exe": "/" + strings.Repeat("z", 4000)})
	got := w.Describe(5)
	for _, s := range []string{got.Comm, got.Cgroup, got.Unit, got.Exe, got.WhyNull} {
		if len(s) > maxString {
			t.Errorf("a string of %d bytes", len(s))
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	_, w := newFake(t, Options{})
	for i := range 3 * maxKnown {
		w.remember(sched.Process{PID: i})
	}
	if n := len(w.known); n > maxKnown {
		t.Errorf("%d processes", n)
	}
}

func TestSamePIDNamespaceAsInit(t *testing.T) {
	for _, c := range []struct {
		name, ns, status string
		same             bool
		says             string
	}{
		{"the machine's", initPIDNamespace, "NSpid:\t7\n", true, ""},
		{"a container", "pid:[4026532441]", "NSpid:\t7\n", false, "--pid=host"},
		{"another's proc", initPIDNamespace, "NSpid:\t900\t7\n", false, "mount one that is"},
		{"no proc", "", "", false, "cannot be told"},
	} {
		f, w := newFake(t, Options{})
		if c.ns != "" {
			f.process(7, map[string]string{"ns/pid": c.ns, "status": c.status})
			if err := os.Symlink("7", filepath.Join(f.root, "self")); err != nil {
				t.Fatal(err)
			}
		}
		same, why := w.SamePIDNamespaceAsInit()
		if same != c.same || !strings.Contains(why, c.says) || same == (why != "") {
			t.Errorf("%s: %v, %q", c.name, same, why)
		}
	}
}

// TestRealProc describes ourselves and a child.
func TestRealProc(t *testing.T) {
	w := New(Options{Args: true})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := w.Describe(os.Getpid())
	if got.Exe != exe || got.UID == nil || *got.UID != os.Geteuid() || got.Start == 0 || got.Cgroup == "" || len(got.Args) != len(os.Args) || got.WhyNull != "" {
		t.Errorf("ourselves: %+v", got)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	p := w.Describe(child.Process.Pid)
	if p.Start < got.Start || p.Gone || !w.Alive(p.PID, p.Start) {
		t.Errorf("the child: %+v", p)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if w.Alive(1<<22+1, 1) {
		t.Error("a pid beyond the kernel's limit lives")
	}
	child.Wait()
	if w.Alive(p.PID, p.Start) {
		t.Error("it lives after its end")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(statLine("a) b", "5")))
	f.Add([]byte("0::/system.slice/docker-" + hex64 + ".scope\n"))
	f.Add([]byte("Uid:\t1\t2\t3\t4\nNSpid:\t1\t2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if st, err := parseStat(b); err == nil && !strings.Contains(string(b), "("+st.comm+")") {
			t.Fatalf("comm %q", st.comm)
		}
		parseStatus(b)
		parseArgs(b)
		if u := Unit(parseCgroup(b)); u != "" && !strings.Contains(u, ":") {
			t.Fatalf("unit %q", u)
		}
	})
}

func BenchmarkDescribe(b *testing.B) {
	w := New(Options{})
	for b.Loop() {
		w.Describe(os.Getpid())
	}
}

func BenchmarkDescribeNew(b *testing.B) {
	w := New(Options{})
	for b.Loop() {
		w.Forget(os.Getpid())
		w.Describe(os.Getpid())
	}
}
