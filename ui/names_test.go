package ui

import (
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

// TestRunlistIsNamedByItsGraphicsEngine: on an H200 runlist 0 feeds gr0, ce0
// and ce1.
func TestRunlistIsNamedByItsGraphicsEngine(t *testing.T) {
	g := &sched.GPUView{GPU: sched.GPU{Runlists: []sched.Runlist{
		{ID: 0, Engines: []uint32{9, 1, 10}}, {ID: 1, Engines: []uint32{11}}, {ID: 2, Engines: []uint32{12, 13}}, {ID: 3}}}}
	for id, want := range []string{"gr0", "ce2", "ce3+ce4", "", ""} {
		if got := runlistName(g, id); got != want {
			t.Errorf("runlist %d is %q, want %q", id, got, want)
		}
	}
	if got := runlistName(nil, 0); got != "" {
		t.Errorf("without a GPU: %q", got)
	}
	h := start(t, 120, 40, func(now sched.Time) *sched.Snapshot {
		s := oneGPU(now)
		s.GPUs[0].Runlists[0].Engines = []uint32{1, 9, 10}
		return s
	}, nil)
	if tree := h.plain(); !strings.Contains(tree, "gr0 (runlist 0)") || strings.Contains(tree, "ce0") {
		t.Errorf("the tree:\n%s", tree)
	}
	h.press("enter")
	if detail := h.plain(); !strings.Contains(detail, "gr0, ce0, ce1") {
		t.Errorf("the detail:\n%s", detail)
	}
}
