package ui

import (
	"strconv"

	"tsgtop/internal/sched"
)

// groupTag names what a grouping depends on, so that numbers of another one
// are not taken for its own.
func (c *Common) groupTag(by groupBy) string {
	return groupNames[by] + " " + strconv.Itoa(c.onGPU) + " " + c.filter.text
}

// askGroups has the snapshot take the statistics of the score screen's groups,
// as often as numbers are renewed: each time costs as much as those of all TSGs.
func (m *Model) askGroups(opts *sched.SnapshotOptions, all bool) {
	by := m.score.group
	if by == byNothing {
		return
	}
	tag := m.groupTag(by)
	if m.live != nil && m.live.GroupTag == tag && !all && !m.every(numbersEvery) {
		return
	}
	// Called under the board's lock: it has its own copy of what it needs.
	onGPU, f := m.onGPU, m.filter
	opts.GroupTag = tag
	opts.Group = func(t *sched.TSGView) (string, bool) {
		if onGPU != sched.Unknown && onGPU != t.ID.GPU || !f.empty() && !f.matches(t) {
			return "", false
		}
		key, _ := groupKey(by, t)
		return key, true
	}
}

// groupSums are what the snapshot says of the groups of a grouping, by key.
func (c *Common) groupSums(s *shape) map[string]*sched.GroupView {
	if c.snap == nil || c.snap.GroupTag != c.groupTag(s.group) {
		return nil
	}
	out := make(map[string]*sched.GroupView, len(c.snap.Groups))
	for i := range c.snap.Groups {
		out[c.snap.Groups[i].Key] = &c.snap.Groups[i]
	}
	return out
}
