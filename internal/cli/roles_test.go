//go:build linux

package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/config"
	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// Roles that are marked on the screen are kept while control is armed, and put
// back when the mark goes and when tsgtop ends.
func TestScreenKeepsRoles(t *testing.T) {
	var out, errs bytes.Buffer
	o := &options{env: env{strings.NewReader(""), &out, &errs}, source: "sim:speed=20,lc"}
	o.conf = &config.Config{BE: 300}
	s, err := o.open(false, recording.PlayerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.board.Run(ctx)
	acting, why, _, done := o.screenController(ctx, s, controlOptions{actuator: "auto"})
	if acting == nil {
		t.Fatal(why)
	}
	r := o.keepRoles(ctx, s, acting)
	be := s.sim.Targets()[1]
	var gen uint64
	until(t, "the TSG to be on the board", func() bool {
		for _, v := range s.board.Snapshot(sched.SnapshotOptions{}).TSGs {
			if v.ID == be.TSGID {
				gen = v.Gen
			}
		}
		return gen != 0
	})
	slice := func() uint64 { us, _ := s.sim.Timeslice(be); return us }
	if err := r.Mark(gen, "be"); err == nil {
		t.Error("marked although control is not armed")
	}
	if err := acting.Arm(true); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"300 us", "Put back"} {
		if !strings.Contains(r.Explain(gen, "be"), word) {
			t.Errorf("no %q in %q", word, r.Explain(gen, "be"))
		}
	}
	if err := r.Mark(gen, "be"); err != nil {
		t.Fatal(err)
	}
	until(t, "the role to be kept", func() bool { role, _ := r.Role(gen); return slice() == 300 && role == string(steer.BE) })
	s.sim.Interfere(be, 2048)
	until(t, "the role to be kept again", func() bool { return slice() == 300 })
	if err := r.Mark(gen, ""); err != nil {
		t.Fatal(err)
	}
	until(t, "the mark's end", func() bool { role, _ := r.Role(gen); return slice() == 2048 && role == "" })
	if err := r.Mark(gen, "be"); err != nil {
		t.Fatal(err)
	}
	until(t, "the role to be kept", func() bool { return slice() == 300 })
	if lines, err := done(); err != nil || slice() != 2048 {
		t.Errorf("at the end: %d us, %q, %v", slice(), lines, err)
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 500 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}
