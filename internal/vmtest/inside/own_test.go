//go:build vmtest

package inside

import (
	"errors"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tsgtop/probes/rmcalls"
)

// checkOwn makes one announced call and one that is not, on memory that does not
// move, and asks the witness for both.
func checkOwn(t *testing.T, p *rmcalls.Probe) {
	t.Helper()
	c := startCUDA(t, 0)
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANONYMOUS|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	arg, params := mem[:32], mem[1024:1032]
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
	le.PutUint32(arg[0:], c.client)
	le.PutUint32(arg[4:], c.tsg)
	le.PutUint32(arg[8:], 0xa06c0103)
	le.PutUint64(arg[0x10:], uint64(at(params)))
	le.PutUint32(arg[0x18:], 8)
	le.PutUint64(params, 555)
	e := rmcalls.Expected{ID: 42, Command: "c42", TID: unix.Gettid(), FD: int(c.ctl.f.Fd()), Arg: at(arg), Params: at(params)}
	if err := p.Expect(e); err != nil {
		t.Fatal(err)
	}
	if err := ioctl(c.ctl.f.Fd(), escControl, 32, arg); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []rmcalls.OwnPhase{rmcalls.OwnEntry, rmcalls.OwnExit} {
		own, err := p.WaitOwn(42, phase, 2*time.Second)
		if err != nil {
			t.Fatalf("phase %d: %v", phase, err)
		}
		if phase == rmcalls.OwnExit && (own.Status != 0 || own.Number != 0xa06c0103 || uint32(own.Object) != c.tsg || own.Duration <= 0) {
			t.Errorf("the witness says %+v", own)
		}
	}
	e.ID, e.Arg = 43, at(arg)+64 // announced for another address: this call is not it
	if err := p.Expect(e); err != nil {
		t.Fatal(err)
	}
	if err := ioctl(c.ctl.f.Fd(), escControl, 32, arg); err != nil {
		t.Fatal(err)
	}
	if own, err := p.WaitOwn(43, rmcalls.OwnExit, 200*time.Millisecond); !errors.Is(err, rmcalls.ErrNotSeen) {
		t.Errorf("a call that was not made was seen: %+v, %v", own, err)
	}
	if err := p.Forget(unix.Gettid()); err != nil {
		t.Error(err)
	}
}
