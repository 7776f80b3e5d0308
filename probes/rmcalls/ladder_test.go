package rmcalls

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// TestLadder: the best rung that works here is taken, and each better one has
// its reason, in the status too.
func TestLadder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: loading eBPF programs")
	}
	p, err := Open(Options{Major: standInMajor})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rungs := Rungs()
	refused := p.Refusals()
	if len(refused) >= len(rungs) || rungs[len(refused)] != p.Rung() {
		t.Fatalf("on rung %s after %d refusals of %v", p.Rung(), len(refused), rungs)
	}
	s := p.Status()
	if s.Probe != "rm" || s.State != sched.ProbeOK || s.Rung != p.Rung().Title() {
		t.Errorf("status %+v", s)
	}
	for i, r := range refused {
		if r.Rung != rungs[i] || r.Reason == "" || !strings.Contains(s.Why, string(r.Reason)) {
			t.Errorf("refusal %d: %+v; status %q", i, r, s.Why)
		}
	}
	if !exists("/sys/module/nvidia") {
		if len(refused) < 2 || refused[0].Reason != NoModule || refused[1].Reason != NoModule {
			t.Errorf("refusals without the driver: %v", refused)
		}
	}
	if e := p.ExitStatus(); e.State != sched.ProbeOK {
		t.Errorf("ends of processes: %+v", e)
	}
}

// TestNextRungAfterFailure: a rung whose last hook is refused leaves nothing
// behind, and the next one works as if it were the first.
func TestNextRungAfterFailure(t *testing.T) {
	refused := fmt.Errorf("refused: %w", unix.EPERM)
	p := open(t, Options{Rung: Auto, attach: func(name string, prog *ebpf.Program) ([]link.Link, error) {
		if name == "tp_enter_ioctl" {
			return nil, refused
		}
		return attach(name, prog)
	}})
	if p.Rung() != RungTPBTF {
		t.Fatalf("on rung %s, want %s", p.Rung(), RungTPBTF)
	}
	r := p.Refusals()
	if last := r[len(r)-1]; last.Rung != RungTP || !errors.Is(last, unix.EPERM) {
		t.Errorf("refusals %v", r)
	}
	c := newCaller(t)
	got := collect(t, p)
	c.control(rm.CtrlTSGPreempt, nil)
	if calls := got.take(); len(calls) != 1 {
		t.Errorf("%d calls came, want 1", len(calls))
	}
	if _, err := p.Losses(); err != nil {
		t.Error(err)
	}
}

// TestForcedRung: a rung that cannot be had is an error with its reason, not
// another rung.
func TestForcedRung(t *testing.T) {
	if exists("/sys/module/nvidia") {
		t.Skip("skip: the nvidia module is loaded here, so its rungs may work")
	}
	for _, rung := range []Rung{RungFentry, RungKprobe} {
		p, err := Open(Options{Rung: rung})
		if err == nil {
			p.Close()
			t.Fatalf("%s opened without the driver", rung)
		}
		var u *Unavailable
		var r *Refusal
		if !errors.As(err, &u) || len(u.Refusals) != 1 || !errors.As(err, &r) || r.Rung != rung || r.Reason != NoModule {
			t.Errorf("%s: %v", rung, err)
		}
		if s := Missing(err); s.State != sched.ProbeMissing || !strings.Contains(s.Why, string(NoModule)) || s.Help == "" {
			t.Errorf("%s: status %+v", rung, s)
		}
	}
}

func TestRefusalReasons(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Reason
	}{
		{fmt.Errorf("load: %w", ebpf.ErrNotSupported), OldKernel},
		{fmt.Errorf("attach: %w", os.ErrNotExist), NoFunction},
		{fmt.Errorf("target: %w", btf.ErrNotFound), NoFunction},
		{fmt.Errorf("load: %w", unix.EINVAL), OtherReason},
		{&noTracefs{unix.EPERM}, NoTracefs},
	} {
		if c.want == OldKernel && bpfRefused() {
			continue // see TestOldKernelOrRefused
		}
		r := RungFentry.refuse(c.err)
		if r.Reason != c.want || !errors.Is(r, errors.Unwrap(c.err)) {
			t.Errorf("%v: %+v, want %q", c.err, r, c.want)
		}
		if !strings.Contains(r.Error(), string(c.want)) || !strings.Contains(r.Error(), "fentry") {
			t.Errorf("text %q", r.Error())
		}
	}
	denied := RungFentry.refuse(unix.EPERM)
	switch {
	case os.Geteuid() != 0:
		if denied.Reason != NotRoot {
			t.Errorf("as an ordinary user: %+v", denied)
		}
	case lockedDown():
		if denied.Reason != Lockdown {
			t.Errorf("under lockdown: %+v", denied)
		}
	default:
		if denied.Reason != Forbidden {
			t.Errorf("as root: %+v", denied)
		}
	}
}

// TestCloseEndsRun: Close ends Run and can be called again.
func TestCloseEndsRun(t *testing.T) { eachRung(t, testCloseEndsRun) }

func testCloseEndsRun(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	started := make(chan struct{})
	done := make(chan error, 1)
	first := true
	go func() {
		done <- p.Run(t.Context(), func([]sched.Event) {
			if first {
				first = false
				close(started)
			}
		})
	}()
	<-started
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Run after Close: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := p.WaitOwn(1, OwnEntry, 1); !errors.Is(err, ErrNotSeen) {
		t.Errorf("waiting on a closed probe: %v", err)
	}
}

// TestOldKernelOrRefused: a feature that the loader misses is the kernel's age
// only where bpf() itself is not refused.
func TestOldKernelOrRefused(t *testing.T) {
	missing := fmt.Errorf("loading the programs: map x: %w", ebpf.ErrNotSupported)
	want := OldKernel
	if bpfRefused() {
		want = NotRoot
		if os.Geteuid() == 0 {
			want = RungTP.refuse(unix.EPERM).Reason
		}
	}
	if r := RungTP.refuse(missing); r.Reason != want {
		t.Errorf("%+v, want %q", r, want)
	}
}
