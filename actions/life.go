package actions

import "tsgtop/internal/sched"

// life is how far one command is. It is changed by next alone, which is pure:
// what happens to a command is tested without a GPU, a disk or a clock.
type life struct {
	step  sched.CommandStep
	value bool // it changes a value, which must be put back: not a preempt

	audited  bool // its intent is in the audit log
	held     bool // the journal has its old value
	issued   bool // the call may be under way, or have been made
	changed  bool // the value may not be what it was
	answered bool // RM has answered, or the call was not made
	undo     bool // asked for and not done yet
	stopping bool // no more is to be sent
}

// happening is something that happens to a command.
type happening uint8

const (
	confirmed     happening = iota + 1 // the operator said yes
	cancelled                          // the operator said no, or tsgtop ends
	audited                            // the intent is in the audit log
	auditFailed                        // it could not be written
	journaled                          // the old value is in the journal
	journalFailed                      // it could not be written
	baselineDone                       // there is a baseline, or there will be none
	targetGone                         // the target ended before anything was sent
	notSent                            // the call was not made
	refusedByRM                        // RM answered that it did not do it
	acceptedByRM                       // RM answered with success
	unclear                            // RM answered in a way that leaves open what it did
	unanswered                         // patience is at an end; RM may still do it
	judgedFinally                      // CHANGED is final
	undoAsked                          // put the old value back
	undone                             // it is back, or there is nothing to put back
	undoFailed                         // it is not
	takenOver                          // somebody else has set the value since: it is theirs
)

// demand is what is to be done next, by whoever runs the command. Its outcome
// comes back as a happening.
type demand uint8

const (
	wantAudit    demand = iota + 1 // write the intent: audited, auditFailed
	wantJournal                    // write the old value: journaled, journalFailed
	wantBaseline                   // look at the trace: baselineDone, targetGone
	wantIssue                      // send: notSent, refusedByRM, acceptedByRM, unclear, unanswered
	wantJudge                      // compare: judgedFinally
	wantResult                     // write the result to the audit log
	wantRefusal                    // write to the audit log that nothing was sent
	wantUndo                       // put the old value back: undone, undoFailed
	wantRelease                    // take the old value out of the journal: nothing was changed
)

func newLife(op sched.Op) life { return life{step: sched.StepAsked, value: op != sched.OpPreempt} }

// ended tells whether nothing more comes, but for an undo.
func (l life) ended() bool {
	return l.step == sched.StepJudged || l.step == sched.StepUndone || l.step == sched.StepRefused
}

// next gives the life after something has happened, and what is to be done. What
// does not fit a command's step changes nothing.
func next(l life, h happening) (life, []demand) {
	switch h {
	case cancelled:
		return l.cancel()
	case undoAsked:
		return l.askUndo()
	case undone, undoFailed:
		return l.afterUndo(h)
	case takenOver:
		if l.answered && !l.undo {
			l.changed, l.held = false, false
		}
		return l, nil
	}
	switch {
	case l.step == sched.StepAsked && h == confirmed:
		l.step = sched.StepConfirmed
		return l, []demand{wantAudit}
	case l.step == sched.StepConfirmed && !l.audited && h == audited:
		l.audited = true
		if l.stopping {
			return l.refuse()
		}
		if l.value {
			return l, []demand{wantJournal}
		}
		l.step = sched.StepBaseline
		return l, []demand{wantBaseline}
	case l.step == sched.StepConfirmed && !l.audited && h == auditFailed:
		l.step = sched.StepRefused
		return l, nil
	case l.step == sched.StepConfirmed && l.audited && h == journaled:
		l.step, l.held = sched.StepJournaled, true
		if l.stopping {
			return l.refuse()
		}
		l.step = sched.StepBaseline
		return l, []demand{wantBaseline}
	case l.step == sched.StepConfirmed && l.audited && h == journalFailed:
		return l.refuse()
	case l.step == sched.StepBaseline && h == targetGone:
		return l.refuse()
	case l.step == sched.StepBaseline && h == baselineDone:
		if l.stopping || l.value && !l.held || !l.audited {
			return l.refuse()
		}
		l.step, l.issued, l.changed = sched.StepIssued, true, l.value
		return l, []demand{wantIssue}
	case l.issued && !l.answered:
		return l.answer(h)
	case l.step == sched.StepObserved && h == judgedFinally:
		l.step = sched.StepJudged
		return l, []demand{wantResult}
	}
	return l, nil
}

// refuse ends a command of which nothing was sent.
func (l life) refuse() (life, []demand) {
	l.step, l.undo = sched.StepRefused, false
	if l.held {
		l.held = false
		return l, []demand{wantRelease, wantRefusal}
	}
	return l, []demand{wantRefusal}
}

// answer is what RM said, or that the call was not made.
func (l life) answer(h happening) (life, []demand) {
	switch h {
	case notSent:
		l.answered, l.changed = true, false
		if l.step == sched.StepJudged { // patience had ended, and then it turned out not to have been sent
			return l.release(nil)
		}
		return l.refuse()
	case refusedByRM:
		l.answered, l.changed = true, false
		if l.step == sched.StepJudged {
			return l.release(nil)
		}
		l.step = sched.StepObserved
		return l.release([]demand{wantJudge})
	case acceptedByRM, unclear:
		l.answered = true
		if l.undo {
			return l, []demand{wantUndo}
		}
		if l.step == sched.StepJudged {
			return l, nil
		}
		l.step = sched.StepObserved
		return l, []demand{wantJudge}
	case unanswered:
		if l.step == sched.StepIssued {
			l.step = sched.StepJudged
			return l, []demand{wantResult}
		}
	}
	return l, nil
}

// release takes the journal's entry away where it is known that nothing was changed.
func (l life) release(then []demand) (life, []demand) {
	l.undo = false
	if !l.held {
		return l, then
	}
	l.held = false
	return l, append([]demand{wantRelease}, then...)
}

func (l life) cancel() (life, []demand) {
	switch l.step {
	case sched.StepAsked:
		l.step = sched.StepRefused
		return l, nil
	case sched.StepBaseline:
		return l.refuse()
	case sched.StepConfirmed, sched.StepJournaled:
		l.stopping = true // an outcome is on its way
	}
	return l, nil
}

func (l life) askUndo() (life, []demand) {
	switch {
	case !l.value || l.step == sched.StepRefused || l.step == sched.StepUndone:
		return l, nil
	case !l.issued:
		return l.cancel()
	case !l.answered:
		l.undo = true // once RM has answered
		return l, nil
	case !l.changed || l.undo:
		return l, nil
	}
	l.undo = true
	return l, []demand{wantUndo}
}

func (l life) afterUndo(h happening) (life, []demand) {
	if !l.undo || !l.answered {
		return l, nil
	}
	l.undo = false
	judged := l.step == sched.StepJudged
	var then []demand
	if !judged {
		then = []demand{wantResult}
	}
	if h == undoFailed {
		l.step = sched.StepJudged
		return l, then
	}
	l.step, l.changed, l.held = sched.StepUndone, false, false
	return l, then
}
