//go:build linux

package probes

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/probes/doctor"
)

// Diagnosis is what attaching the probes for a moment showed.
type Diagnosis struct {
	Checks   []doctor.Check
	Rung     string // of the RM call probe; empty where there is none
	Observes bool   // something can be observed
}

// Diagnose attaches every probe, watches for a moment, and detaches them.
func Diagnose(ctx context.Context, o Options) Diagnosis {
	l, err := NewLive(o)
	if err != nil {
		return Diagnosis{Checks: []doctor.Check{{Name: "probes", State: doctor.Missing, What: "not attached", Why: err.Error()}}}
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var mu sync.Mutex
	status := map[string]sched.ProbeStatus{}
	var scan *sched.Inventory
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx, func(es []sched.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range es {
				switch e := e.(type) {
				case sched.ProbeStatus:
					status[fmt.Sprintf("%s %d", e.Probe, e.GPU)] = e
				case sched.Inventory:
					if scan == nil {
						scan = &e
					}
				}
			}
		})
	}()
	select {
	case <-l.Ready():
		// NVML's child and the trace's binding answer in this time.
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	cancel()
	<-done
	return summarise(status, scan)
}

// summarise turns the probes' statuses into checks.
func summarise(status map[string]sched.ProbeStatus, scan *sched.Inventory) Diagnosis {
	var d Diagnosis
	keys := make([]string, 0, len(status))
	for k := range status {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		s := status[k]
		c := doctor.Check{Name: "probe " + s.Probe, State: doctor.OK, What: s.What, Why: s.Why, Help: s.Help}
		if s.GPU != sched.Unknown {
			c.Name += fmt.Sprintf(" GPU%d", s.GPU)
		}
		switch s.State {
		case sched.ProbeLimited, sched.ProbeReleased:
			c.State = doctor.Limited
		case sched.ProbeMissing:
			c.State = doctor.Missing
		}
		if s.Rung != "" {
			c.What += " by " + s.Rung
		}
		if c.What == "" {
			c.What = string(s.State)
		}
		if s.Probe == "rm" && s.State != sched.ProbeMissing {
			d.Rung = s.Rung
		}
		if s.State != sched.ProbeMissing && (s.Probe == "rm" || s.Probe == "ctxsw" || s.Probe == "discover") {
			d.Observes = true
		}
		d.Checks = append(d.Checks, c)
	}
	if scan != nil {
		c := doctor.Check{Name: "first scan", State: doctor.OK}
		c.What = fmt.Sprintf("%d clients, %d TSGs, %d channels in %.1f ms", len(scan.Clients), len(scan.TSGs), len(scan.Channels),
			float64(scan.End-scan.Start)/1e6)
		if scan.PerProcessNS > 0 {
			c.What += fmt.Sprintf(", %.2f ms for each process", float64(scan.PerProcessNS)/1e6)
		}
		c.Why = scan.Why
		d.Checks = append(d.Checks, c)
	}
	return d
}
