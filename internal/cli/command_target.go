//go:build linux

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// wanted is a TARGET as it was written.
type wanted struct {
	text string
	id   sched.TSGID
	pid  int // 0: by id
}

func parseTarget(s string) (wanted, error) {
	w := wanted{text: s}
	bad := fail(exitUsage, "target %q: want GPU:RUNLIST:TSG as tsgtop ls shows them, such as 0:0:7, or pid:479", s)
	if rest, ok := strings.CutPrefix(s, "pid:"); ok {
		n, err := strconv.Atoi(rest)
		if err != nil || n <= 0 {
			return w, bad
		}
		w.pid = n
		return w, nil
	}
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return w, bad
	}
	for i, p := range []*int{&w.id.GPU, &w.id.Runlist, &w.id.TSG} {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return w, bad
		}
		*p = n
	}
	return w, nil
}

// find gives the row that was meant.
func (w wanted) find(snap *sched.Snapshot) (*sched.TSGView, error) {
	var rows, compute, shared []*sched.TSGView
	for i := range snap.TSGs {
		t := &snap.TSGs[i]
		if w.pid == 0 && t.ID == w.id && !t.Context || w.pid != 0 && t.Process.PID == w.pid && !t.Context {
			rows = append(rows, t)
			if steer.IsCompute(t) {
				compute = append(compute, t)
			}
		} else if w.pid != 0 && t.MPS && t.Clients > 0 && slices.Contains(t.HolderPIDs, w.pid) && !t.Context && steer.IsCompute(t) {
			shared = append(shared, t)
		}
	}
	switch {
	case w.pid == 0:
		compute = rows
	case len(compute) == 0:
		compute = shared // a client of MPS: its work is in the server's
	}
	switch {
	case len(compute) == 1:
		return compute[0], nil
	case len(compute) > 1:
		var ids []string
		for _, t := range compute {
			ids = append(ids, fmt.Sprintf("%s (%s)", t.ID, t.Object))
		}
		return nil, fail(exitUsage, "target %s: there are several: %s", w.text, strings.Join(ids, ", "))
	case w.pid != 0:
		return nil, fail(exitTarget, "target %s: this process has no compute TSG, or has ended; tsgtop ls shows those that are there", w.text)
	}
	return nil, fail(exitTarget, "target %s: there is no such TSG; tsgtop ls shows those that are there", w.text)
}

// meet waits until the source has told of the target.
func (o *options) meet(ctx context.Context, s *opened, w wanted) (*sched.TSGView, error) {
	if s.live != nil {
		select {
		case <-s.live.Ready():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// Details of what was just found follow within milliseconds; on a busy machine
	// a scan can be cut short, and the next one comes soon.
	until := time.Now().Add(3 * time.Second)
	for {
		row, err := w.find(s.board.Snapshot(sched.SnapshotOptions{}))
		if err == nil || time.Now().After(until) {
			return row, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
