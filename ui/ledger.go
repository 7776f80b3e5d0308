package ui

import (
	"fmt"
	"strings"
	"time"

	"tsgtop/internal/sched"
)

// ledger draws the latest commands with their three lamps, the newest last;
// nothing where there are none. The evidence stands beside the lamps where the
// terminal is wide, else on a line of its own under the newest.
func (c *Common) ledger(most int) []string {
	if c.live == nil || len(c.live.Commands) == 0 || most < 2 {
		return nil
	}
	cmds := c.live.Commands
	beside := c.width >= 110
	lines := most - 1
	if !beside {
		lines--
	}
	n := min(len(cmds), max(lines, 1))
	out := []string{c.rule("commands")}
	for i := len(cmds) - n; i < len(cmds); i++ {
		out = append(out, c.commandLine(&cmds[i], beside))
	}
	last := &cmds[len(cmds)-1]
	if ev := c.evidence(last); len(out) < most && (!beside || cellCount(ev) > c.width-82) {
		out = append(out, c.line().put(rolePlain, "   ").cut(roleDim, c.own(ev), c.width-4).String())
	}
	return out
}

// rule is a line across the screen with a word in it.
func (c *Common) rule(word string) string {
	l := c.line()
	l.put(roleBorder, " "+c.signs.rule+" ").put(roleHead, word).put(rolePlain, " ")
	return l.put(roleBorder, strings.Repeat(c.signs.rule, max(l.room()-1, 0))).String()
}

func (c *Common) commandLine(cmd *sched.Command, evidence bool) string {
	const before, lampsFull, lampsShort = 15, 34, 18
	l := c.line()
	l.put(roleDim, " "+clock(cmd.Asked)+" ").left(roleStrong, fmt.Sprintf("#%d", cmd.Number), before-l.w)
	short := c.width < 76
	width := 28
	switch {
	case short:
		width = c.width - before - lampsShort - 1
	case !evidence:
		width = min(c.width-before-lampsFull-1, 40)
	}
	l.cut(rolePlain, c.commandWords(cmd), width).to(before + width)
	if cmd.Step == sched.StepRefused {
		return l.put(roleBad, " REFUSED ").cut(rolePlain, c.own(cmd.Why), l.room()-1).String()
	}
	c.lamps(l, cmd, short)
	if evidence {
		l.put(rolePlain, "  ").cut(roleDim, c.own(c.evidence(cmd)), l.room()-1)
	}
	return l.String()
}

// commandWords says what a command does: "timeslice 7 2048→200µs".
func (c *Common) commandWords(cmd *sched.Command) string {
	tsg := idText(cmd.Target.TSG)
	if c.snap != nil && len(c.snap.GPUs) > 1 {
		tsg = cmd.Target.TSGID.String()
	}
	s := string(cmd.Op) + " " + tsg
	switch cmd.Op {
	case sched.OpPreempt:
		if cmd.Count > 1 {
			s += fmt.Sprintf(" %s%d", c.signs.times, cmd.Count)
		}
	default:
		old := c.value(cmd.Op, cmd.Old)
		if cmd.Op == sched.OpTimeslice && cmd.Old != nil {
			old = fmt.Sprint(*cmd.Old)
		}
		s += " " + old + c.signs.arrow + c.value(cmd.Op, cmd.New)
	}
	switch {
	case cmd.Restored != nil && *cmd.Restored:
		s += " (restored)"
	case cmd.Restored != nil:
		s += " (NOT restored)"
	}
	if len(cmd.Xid) > 0 {
		s += fmt.Sprintf(" Xid %d", cmd.Xid[0])
	}
	return s
}

// lamps draws the three lamps, with their whole names or their first letters.
func (c *Common) lamps(l *line, cmd *sched.Command, short bool) {
	names := [3]string{"RAN", "ACCEPTED", "CHANGED"}
	if short {
		names = [3]string{"RAN", "ACC", "CHG"}
	}
	for i, s := range [3]sched.LampState{cmd.Ran.State, cmd.Accepted.State, cmd.Changed.State} {
		sign, ro := c.signs.lamp(s)
		if i == 0 || !short {
			l.put(rolePlain, " ")
		}
		l.put(rolePlain, " "+names[i]+" ").put(ro, sign)
	}
}

// evidence is the line of numbers behind the lamps, or what is missing for
// them: the first lamp that is not a yes has the word.
func (c *Common) evidence(cmd *sched.Command) string {
	switch {
	case cmd.Step == sched.StepRefused:
		return cmd.Why
	case cmd.Ran.State == sched.LampNo || cmd.Ran.State == sched.LampUnknown:
		return "ran: " + cmd.Ran.Why
	case cmd.Accepted.State == sched.LampNo || cmd.Accepted.State == sched.LampUnknown:
		s := "accepted: "
		if cmd.Accepted.Status != "" {
			s += cmd.Accepted.Status + ", "
		}
		return s + cmd.Accepted.Why
	case cmd.Changed.State == sched.LampWaiting && cmd.Issued != 0 && c.live != nil:
		why := cmd.Changed.Why
		if why == "" {
			why = "looking at the trace"
		}
		return fmt.Sprintf("%s, for %.1f s", why, max(c.live.Time.Sub(cmd.Issued), 0).Round(100*time.Millisecond).Seconds())
	case cmd.Ran.State == sched.LampWaiting || cmd.Accepted.State == sched.LampWaiting:
		since := cmd.Issued
		if since == 0 {
			since = cmd.Asked
		}
		s := string(cmd.Step)
		if c.live != nil && since != 0 {
			s += fmt.Sprintf(", for %.1f s", max(c.live.Time.Sub(since), 0).Round(100*time.Millisecond).Seconds())
		}
		return s
	case cmd.Changed.Evidence != "":
		return cmd.Changed.Evidence
	default:
		return cmd.Changed.Why
	}
}
