package xid

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

// tracepoint is the driver's nvidia_dev_xid, through an eBPF program. The
// program stays loaded; only its link holds the driver's module.
type tracepoint struct {
	objects bpf.XidObjects
	ring    *ringbuf.Reader
	link    link.Link
}

func loadTracepoint() (*tracepoint, error) {
	t := &tracepoint{}
	if err := bpf.LoadXidObjects(&t.objects, nil); err != nil {
		var v *ebpf.VerifierError
		if errors.As(err, &v) {
			line, _, _ := strings.Cut(err.Error(), "\n")
			return nil, fmt.Errorf("loading the eBPF program for Xids: %s", line)
		}
		if errors.Is(err, unix.EPERM) {
			// The loader's error guesses at the cause.
			err = unix.EPERM
		}
		return nil, fmt.Errorf("loading the eBPF program for Xids: %w", err)
	}
	ring, err := ringbuf.NewReader(t.objects.Xids)
	if err != nil {
		_ = t.objects.Close()
		return nil, fmt.Errorf("opening the ring of Xids: %w", err)
	}
	t.ring = ring
	return t, nil
}

// errNoTracepoint: the driver is not loaded, or is older than 575.
var errNoTracepoint = errors.New("no tracepoint nvidia_dev_xid: driver 575 or newer is not loaded")

func (t *tracepoint) attach() error {
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "nvidia_dev_xid", Program: t.objects.Xid})
	if errors.Is(err, os.ErrNotExist) {
		return errNoTracepoint
	}
	if err != nil {
		return fmt.Errorf("attaching to the tracepoint nvidia_dev_xid: %w", err)
	}
	t.link = l
	return nil
}

// detach lets the driver's module go.
func (t *tracepoint) detach() error {
	if t.link == nil {
		return nil
	}
	err := t.link.Close()
	t.link = nil
	return err
}

// run gives each Xid to report until the ring is closed.
func (t *tracepoint) run(toTime func(uint64) sched.Time, report func(sched.Xid)) error {
	var r ringbuf.Record
	for {
		err := t.ring.ReadInto(&r)
		if errors.Is(err, ringbuf.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the ring of Xids: %w", err)
		}
		if x, err := decode(r.RawSample, toTime); err == nil {
			report(x)
		}
	}
}

// lost is how many Xids the ring had no room for.
func (t *tracepoint) lost() uint64 {
	var n uint64
	if err := t.objects.Lost.Get(&n); err != nil {
		return 0
	}
	return n
}

func (t *tracepoint) close() error {
	return errors.Join(t.detach(), t.ring.Close(), t.objects.Close())
}

// decode reads a record of the program. The message may have the process and
// the channel in it, as the log's has.
func decode(b []byte, toTime func(uint64) sched.Time) (sched.Xid, error) {
	var e bpf.XidXidEvent
	if len(b) < int(unsafe.Sizeof(e)) {
		return sched.Xid{}, fmt.Errorf("record of an Xid of %d bytes: want %d", len(b), unsafe.Sizeof(e))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b)
	if int(e.TextLen) > len(e.Text) {
		return sched.Xid{}, fmt.Errorf("record of an Xid with %d bytes of text: at most %d", e.TextLen, len(e.Text))
	}
	pid, name, text := process(strings.TrimSpace(string(e.Text[:e.TextLen])))
	pci, _, _ := strings.Cut(string(e.Pci[:]), "\x00")
	return sched.Xid{
		Time: toTime(e.When), GPU: sched.Unknown, PCI: NormalPCI(pci), Code: e.Code,
		PID: pid, Name: name, Text: text, Channel: channel(text), From: "tracepoint",
	}, nil
}
