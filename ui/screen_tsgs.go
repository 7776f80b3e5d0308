package ui

// tsgsScreen is the first screen: the lane over the tree of TSGs, and the
// ledger of commands under it.
type tsgsScreen struct {
	table
	lane lane
	top  int // line of the table's first row, for the mouse
}

// laneRows is how many lanes there is room for.
func (s *tsgsScreen) laneRows() int {
	switch h := s.Common.height; {
	case h >= 40:
		return 4
	case h >= 24:
		return 2
	default:
		return 1
	}
}

func (s *tsgsScreen) lines(m *Model) []string {
	over := s.gpuLines(s.gpu())
	lanes := s.lane.lines(s.Common)
	if len(lanes) == 0 {
		lanes = []string{s.laneMissing()}
	}
	over = append(over, lanes...)
	most := 3
	switch h := s.Common.height; {
	case h >= 40:
		most = 8
	case h >= 24:
		most = 5
	}
	under := s.ledger(most)
	s.top = 1 + len(over) + 1
	return m.frameOf(over, under, s.selected(), func(height int) []string {
		return s.table.lines(height, &s.lane.slots)
	})
}

// laneMissing says why there is no lane.
func (s *tsgsScreen) laneMissing() string {
	why := "nothing switched in the last " + span(s.lane.span)
	if g := s.Common.gpu(s.gpu()); g == nil {
		why = "no GPU is known yet"
	} else if g.TraceWhy != "" {
		why = g.TraceWhy
	}
	l := s.line().put(rolePlain, " ").left(roleDim, span(s.lane.span), laneLabel-2).put(roleBorder, s.signs.edge)
	return l.cut(roleDim, s.own("no lane: "+why), l.room()-1).String()
}
