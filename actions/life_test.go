package actions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tsgtop/internal/sched"
)

// world is what a command acts on, as little of it as the property needs.
type world struct {
	changed bool // the hardware's value is not what it was
	journal bool // the journal has the old value
	audit   bool // the intent is in the log
	flying  bool // a call is under way: the hardware may do it at any time
	pending []func() []happening
	log     []string
}

// demand queues what somebody who runs the command would do: each piece takes
// effect later, in any order with everything else.
func (w *world) demand(d demand, r *rand.Rand, value bool) error {
	later := func(f func() []happening) { w.pending = append(w.pending, f) }
	ok := r.IntN(4) > 0
	switch d {
	case wantAudit:
		later(func() []happening {
			if !ok {
				return []happening{auditFailed}
			}
			w.audit = true
			return []happening{audited}
		})
	case wantJournal:
		later(func() []happening {
			if !ok {
				return []happening{journalFailed}
			}
			w.journal = true
			return []happening{journaled}
		})
	case wantBaseline:
		later(func() []happening {
			if !ok {
				return []happening{targetGone}
			}
			return []happening{baselineDone}
		})
	case wantIssue:
		if value && !w.journal {
			return fmt.Errorf("a value is changed that is not in the journal")
		}
		if !w.audit {
			return fmt.Errorf("a call is sent that is not in the audit log")
		}
		w.flying = true
		if r.IntN(5) == 0 {
			w.pending = append(w.pending, func() []happening { return []happening{unanswered} })
		}
		later(func() []happening {
			w.flying = false
			switch r.IntN(5) {
			case 0:
				return []happening{notSent}
			case 1:
				return []happening{refusedByRM}
			case 2:
				w.changed = value && r.IntN(2) == 0
				return []happening{unclear}
			}
			w.changed = value
			return []happening{acceptedByRM}
		})
	case wantJudge:
		later(func() []happening { return []happening{judgedFinally} })
	case wantUndo:
		if w.flying {
			return fmt.Errorf("undone while the call is under way")
		}
		later(func() []happening {
			if !ok {
				return []happening{undoFailed}
			}
			w.changed = false
			w.journal = false
			return []happening{undone}
		})
	case wantRelease:
		if w.changed || w.flying {
			return fmt.Errorf("the journal forgets a value that may be changed")
		}
		w.journal = false
	}
	return nil
}

// No order of events leaves a value changed and not journaled, or sends what
// the audit log does not have.
func TestNoOrderOfEventsLosesAChange(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	reached := map[sched.CommandStep]int{}
	for trial := range 40000 {
		op := []sched.Op{sched.OpTimeslice, sched.OpInterleave, sched.OpPreempt}[trial%3]
		value := op != sched.OpPreempt
		l, w := newLife(op), &world{}
		happen := func(h happening) {
			was := l
			var ds []demand
			l, ds = next(l, h)
			w.log = append(w.log, fmt.Sprintf("%v on %+v: %v", h, was, ds))
			for _, d := range ds {
				if err := w.demand(d, r, value); err != nil {
					t.Fatalf("trial %d: %v\n%v", trial, err, w.log)
				}
			}
		}
		for range 40 {
			if l.ended() && l.answered && !l.undo && r.IntN(20) == 0 { // another process sets the value
				w.changed, w.journal = false, false
				happen(takenOver)
			}
			if len(w.pending) > 0 && r.IntN(3) > 0 {
				i := r.IntN(len(w.pending))
				f := w.pending[i]
				w.pending = slices.Delete(w.pending, i, i+1)
				for _, h := range f() {
					happen(h)
				}
			} else {
				happen([]happening{confirmed, confirmed, confirmed, undoAsked, undoAsked, cancelled, judgedFinally, baselineDone}[r.IntN(8)])
			}
			if w.changed && !w.journal {
				t.Fatalf("trial %d: a value is changed and not in the journal\n%v", trial, w.log)
			}
			if w.changed && !l.changed {
				t.Fatalf("trial %d: the life does not know that the value is changed: %+v\n%v", trial, l, w.log)
			}
			if l.held && !w.journal && !l.undo {
				t.Fatalf("trial %d: the life believes in a journal entry that is not there: %+v\n%v", trial, l, w.log)
			}
		}
		reached[l.step]++
	}
	for _, s := range []sched.CommandStep{sched.StepRefused, sched.StepJudged, sched.StepUndone} {
		if reached[s] < 100 {
			t.Errorf("only %d of the trials ended %s: the test does not get about", reached[s], s)
		}
	}
}

// The way of a command to which nothing goes wrong.
func TestStraightLife(t *testing.T) {
	for _, c := range []struct {
		op   sched.Op
		way  []happening
		want []demand
		end  sched.CommandStep
	}{
		{sched.OpTimeslice, []happening{confirmed, audited, journaled, baselineDone, acceptedByRM, judgedFinally, undoAsked, undone},
			[]demand{wantAudit, wantJournal, wantBaseline, wantIssue, wantJudge, wantResult, wantUndo}, sched.StepUndone},
		{sched.OpPreempt, []happening{confirmed, audited, baselineDone, acceptedByRM, judgedFinally, undoAsked},
			[]demand{wantAudit, wantBaseline, wantIssue, wantJudge, wantResult}, sched.StepJudged},
		{sched.OpTimeslice, []happening{confirmed, audited, journaled, baselineDone, refusedByRM, judgedFinally, undoAsked},
			[]demand{wantAudit, wantJournal, wantBaseline, wantIssue, wantRelease, wantJudge, wantResult}, sched.StepJudged},
		{sched.OpInterleave, []happening{confirmed, audited, journalFailed}, []demand{wantAudit, wantJournal, wantRefusal}, sched.StepRefused},
		{sched.OpTimeslice, []happening{confirmed, auditFailed}, []demand{wantAudit}, sched.StepRefused},
		{sched.OpTimeslice, []happening{confirmed, audited, journaled, targetGone}, []demand{wantAudit, wantJournal, wantBaseline, wantRelease, wantRefusal}, sched.StepRefused},
		{sched.OpTimeslice, []happening{confirmed, audited, journaled, baselineDone, unanswered, acceptedByRM, undoAsked, undone},
			[]demand{wantAudit, wantJournal, wantBaseline, wantIssue, wantResult, wantUndo}, sched.StepUndone},
		{sched.OpTimeslice, []happening{confirmed, audited, journaled, baselineDone, undoAsked, acceptedByRM, undone},
			[]demand{wantAudit, wantJournal, wantBaseline, wantIssue, wantUndo, wantResult}, sched.StepUndone},
		{sched.OpTimeslice, []happening{cancelled, confirmed}, nil, sched.StepRefused},
	} {
		l := newLife(c.op)
		var got, ds []demand
		for _, h := range c.way {
			l, ds = next(l, h)
			got = append(got, ds...)
		}
		if !slices.Equal(got, c.want) || l.step != c.end {
			t.Errorf("%s %v: %v, ends %s; want %v, %s", c.op, c.way, got, l.step, c.want, c.end)
		}
		if l.changed && !l.held {
			t.Errorf("%s %v: changed and not in the journal", c.op, c.way)
		}
	}
}
