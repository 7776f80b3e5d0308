//go:build linux

package probes

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// unlisted is a machine whose processes cannot be listed.
type unlisted struct{ *rmfake.Driver }

func (u unlisted) ReadDir(path string) ([]string, error) {
	if path == "/proc" {
		return nil, syscall.EMFILE
	}
	return u.Driver.ReadDir(path)
}

// Who waits for the first scan does not wait for ever where it fails each time.
func TestReadyWhereScansFail(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: observing a machine")
	}
	d := rmfake.New()
	d.AddGPU()
	l, err := NewLive(Options{system: unlisted{d}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	said := ""
	done := make(chan error, 1)
	go func() {
		done <- l.Run(ctx, func(es []sched.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range es {
				if s, ok := e.(sched.ProbeStatus); ok && s.Probe == "discover" {
					said = s.Why
				}
			}
		})
	}()
	select {
	case <-l.Ready():
	case <-time.After(20 * time.Second):
		t.Error("it is waited for a scan that does not come")
	}
	mu.Lock()
	if !strings.Contains(said, "list the machine's processes") {
		t.Errorf("the reason is not told: %q", said)
	}
	mu.Unlock()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
