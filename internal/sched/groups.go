package sched

// groups gathers rows and gives what they have together. A group's statistics
// are taken over all values of its rows, out of the same histograms as a row's.
func (s *State) groups(views []TSGView, group func(*TSGView) (string, bool)) []GroupView {
	rows := make(map[uint64]*row, len(views))
	for _, t := range s.tsgs {
		rows[t.gen] = &t.row
	}
	for _, r := range s.ctxRows {
		rows[r.gen] = r
	}
	var out []GroupView
	var of [][]*TSGView
	index := map[string]int{}
	for i := range views {
		key, in := group(&views[i])
		if !in {
			continue
		}
		k, met := index[key]
		if !met {
			k = len(out)
			index[key] = k
			out, of = append(out, GroupView{Key: key}), append(of, nil)
		}
		out[k].TSGs++
		of[k] = append(of[k], &views[i])
	}
	for k := range out {
		for w := range NumWindows {
			s.scoreGroup(&out[k].Score[w], of[k], rows, w)
		}
	}
	return out
}

func (s *State) scoreGroup(sc *Score, of []*TSGView, rows map[uint64]*row, w Window) {
	var stats []*row // that the trace says something of
	for _, t := range of {
		one := &t.Score[w]
		sc.Turns += one.Turns
		sc.Share, sc.TurnsPerS = plus(sc.Share, one.Share), plus(sc.TurnsPerS, one.TurnsPerS)
		if r := rows[t.Gen]; r != nil && r.st != nil && s.gpu(r.gpu) != nil && s.noTrace(s.gpu(r.gpu), r) == "" {
			stats = append(stats, r)
			if sc.WhyNull == "" {
				sc.WhyNull = one.WhyNull
			}
		}
	}
	if len(stats) == 0 {
		sc.WhyNull = of[0].Score[w].WhyNull
	}
	for q, to := range [...]**Stats{qResidency: &sc.Residency, qWait: &sc.Wait, qOff: &sc.Off} {
		s.pool.reset()
		for _, r := range stats {
			r.st.gather(&s.pool, q, w, s.windowEnd(s.gpu(r.gpu)))
		}
		if s.pool.n > 0 {
			*to = &Stats{}
			s.pool.stats(*to)
		}
	}
	if sc.Residency != nil && sc.Wait != nil && sc.Off != nil && sc.Share != nil {
		sc.WhyNull = ""
	}
	s.switchGroup(sc, of, w)
}

// switchGroup adds up the switches of a group. Copy engines have none to count;
// where those of another TSG are not known, neither is the sum.
func (s *State) switchGroup(sc *Score, of []*TSGView, w Window) {
	var sum Switches
	n := 0
	for _, t := range of {
		switch one := &t.Score[w]; {
		case one.Switches != nil:
			n++
			sum.Forced += one.Switches.Forced
			sum.Voluntary += one.Switches.Voluntary
			sum.SpanS = max(sum.SpanS, one.Switches.SpanS)
		case one.SwitchesWhy != whyCopySwitches && one.SwitchesWhy != whyOtherSwitches:
			sc.SwitchesWhy = one.SwitchesWhy
			return
		}
	}
	if n == 0 {
		sc.SwitchesWhy = whyCopySwitches
		return
	}
	sc.Switches = &sum
}

func plus(a, b *float64) *float64 {
	switch {
	case b == nil:
		return a
	case a == nil:
		return Ptr(*b)
	}
	return Ptr(*a + *b)
}
