package actions

import (
	"fmt"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Durations by which a call is inferred to have gone to the GSP where nobody
// saw its RPC. Measured on an H200, driver 580.159.04: RPCs of these controls
// took 190 to 470 us; a call that the driver answers by itself 10 to 25 us.
const (
	surelyRPC   = 150 * time.Microsecond
	surelyNoRPC = 60 * time.Microsecond
)

// acceptedOf is the lamp ACCEPTED of one call that has come to an end.
func acceptedOf(r Result) sched.Accepted {
	a := sched.Accepted{Where: "unknown"}
	took := r.End.Sub(r.Start)
	if r.Sent && r.End > 0 {
		a.CallUS = sched.Ptr(took.Microseconds())
	}
	set := func(s sched.LampState, format string, args ...any) sched.Accepted {
		a.State, a.Why = s, fmt.Sprintf(format, args...)
		return a
	}
	switch {
	case !r.Sent:
		return set(sched.LampUnknown, "nothing was sent: %v", r.Err)
	case r.Errno != 0:
		a.Where = string(sched.WhereDriver)
		return set(sched.LampNo, "the call failed before RM: errno %d", r.Errno)
	case !r.Answered:
		return set(sched.LampUnknown, "RM gave no status: %v", r.Err)
	}
	a.Status, a.StatusCode = rm.StatusName(r.Status), r.Status
	if r.RPC.Seen {
		a.Where = string(sched.WhereGSP)
		a.RPCus = sched.Ptr(r.RPC.Took.Microseconds())
	}
	name := fmt.Sprintf("%s (0x%x)", a.Status, r.Status)
	if r.Status != 0 {
		switch {
		case r.RPC.Seen:
			return set(sched.LampNo, "the GSP refused it: %s, in an RPC of %d us", name, *a.RPCus)
		case r.RPC.Exact || r.NoGSP:
			a.Where = string(sched.WhereDriver)
			return set(sched.LampNo, "the driver refused it: %s, without asking the GSP", name)
		}
		inferWhere(&a, took)
		return set(sched.LampNo, "refused: %s; by whom is %s (%s)", name, inferredWords(a), r.RPC.Why)
	}
	switch {
	case r.RPC.Seen:
		return set(sched.LampYes, "%s from the GSP, in an RPC of %d us", name, *a.RPCus)
	case r.NoGSP:
		a.Where = string(sched.WhereDriver)
		return set(sched.LampYes, "%s; RM of this GPU runs in the driver, so that there is no GSP to ask", name)
	case r.RPC.Exact:
		a.Where = string(sched.WhereDriver)
		return set(sched.LampNo, "a stub: RM said %s and no RPC left the driver: the GSP was never asked", name)
	}
	inferWhere(&a, took)
	switch a.Where {
	case string(sched.WhereGSP):
		return set(sched.LampYes, "%s after %d us, as long as an RPC to the GSP takes; no RPC was witnessed (%s)", name, *a.CallUS, r.RPC.Why)
	case string(sched.WhereDriver):
		return set(sched.LampUnknown, "RM said %s within %d us, too short for an RPC to the GSP: perhaps a stub; no RPC was witnessed (%s)", name, *a.CallUS, r.RPC.Why)
	}
	return set(sched.LampUnknown, "RM said %s after %d us; whether the GSP was asked is not known (%s)", name, *a.CallUS, r.RPC.Why)
}

func inferWhere(a *sched.Accepted, took time.Duration) {
	switch {
	case took >= surelyRPC:
		a.Where, a.Inferred = string(sched.WhereGSP), true
	case took < surelyNoRPC:
		a.Where, a.Inferred = string(sched.WhereDriver), true
	}
}

func inferredWords(a sched.Accepted) string {
	if a.Inferred {
		return "inferred from the duration: " + a.Where
	}
	return "not known"
}

// acceptedOfAll is the lamp of several calls: the worst, with how many.
func acceptedOfAll(results []Result) sched.Accepted {
	if len(results) == 1 {
		return acceptedOf(results[0])
	}
	// Calls that the meter did not watch are taken at their status: the first and
	// the last tell whether the GSP is asked.
	var worst, watched *sched.Accepted
	ok, n := 0, 0
	for i := range results {
		a := acceptedOf(results[i])
		n++
		if results[i].Answered && results[i].Status == 0 {
			ok++
		}
		switch {
		case a.State == sched.LampNo && (worst == nil || worst.State != sched.LampNo):
			worst = &a
		case results[i].Sent && !results[i].Answered && worst == nil: // of one nothing is known
			worst = &a
		}
		if results[i].RPC.Seen || results[i].RPC.Exact {
			watched = &a
		} else if watched == nil && i == len(results)-1 {
			watched = &a
		}
	}
	if worst != nil {
		w := *worst
		w.Why = fmt.Sprintf("%d of %d calls: NV_OK; of the others the first: %s", ok, n, w.Why)
		if ok == n {
			w.Why = worst.Why
		}
		return w
	}
	if watched == nil {
		return sched.Accepted{Lamp: sched.Lamp{State: sched.LampUnknown, Why: "no call was made"}, Where: "unknown"}
	}
	w := *watched
	w.Why = fmt.Sprintf("%d of %d calls: NV_OK; %s", ok, n, w.Why)
	return w
}

// ranOf is the lamp RAN of all calls of a command.
func ranOf(results []Result) sched.Lamp {
	if len(results) == 0 {
		return sched.Lamp{State: sched.LampUnknown, Why: "nothing was sent"}
	}
	in, out, sent := 0, 0, 0
	var other, why string
	have := true
	var took time.Duration
	for _, r := range results {
		if !r.Sent {
			continue
		}
		sent++
		if !r.Ran.Have {
			have, why = false, r.Ran.Why
		}
		if r.Ran.Other != "" {
			other = r.Ran.Other
		}
		if r.Ran.Entry {
			in++
		}
		if r.Ran.Exit {
			out++
			took = r.Ran.Took
		}
	}
	switch {
	case sent == 0:
		return sched.Lamp{State: sched.LampUnknown, Why: fmt.Sprintf("nothing was sent: %v", results[0].Err)}
	case !have:
		return sched.Lamp{State: sched.LampUnknown, Why: why}
	case other != "":
		return sched.Lamp{State: sched.LampNo, Why: "the eBPF program saw another call than the one that was sent: " + other}
	case in == 0 && results[0].Ran.Made:
		return sched.Lamp{State: sched.LampNo, Why: "the eBPF program that makes the call wrote no record of it"}
	case in == 0:
		return sched.Lamp{State: sched.LampNo, Why: "the eBPF program did not see the call: it does not run, or the call did not get into the driver"}
	case in < sent || out < sent:
		return sched.Lamp{State: sched.LampUnknown, Why: fmt.Sprintf("the eBPF program saw %d of %d calls go into the driver and %d come back", in, sent, out)}
	case results[0].Simulated:
		return sched.Lamp{State: sched.LampYes, Why: fmt.Sprintf("simulated: %d of %d calls seen going in and coming back", out, sent)}
	case sent == 1 && results[0].Ran.Made:
		return sched.Lamp{State: sched.LampYes, Why: fmt.Sprintf("the eBPF program that made the call wrote its record before it, and after it %d us later", took.Microseconds())}
	case results[0].Ran.Made:
		return sched.Lamp{State: sched.LampYes, Why: fmt.Sprintf("the eBPF program that made the %d calls wrote its records before and after each", sent)}
	case sent == 1:
		return sched.Lamp{State: sched.LampYes, Why: fmt.Sprintf("the eBPF program saw exactly this call go into the driver and come back after %d us", took.Microseconds())}
	}
	return sched.Lamp{State: sched.LampYes, Why: fmt.Sprintf("the eBPF program saw each of the %d calls go into the driver and come back", sent)}
}
