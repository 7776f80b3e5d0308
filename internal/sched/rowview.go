package sched

// TSG gives one row of the tree by its generation, also one that ended a short
// while ago (Options.LaneKeep), for which snapshots have none any more. Its
// scores are left out.
func (b *Board) TSG(gen uint64) (TSGView, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.viewOf(gen)
}

func (s *State) viewOf(gen uint64) (TSGView, bool) {
	r := s.rowOf(gen)
	if r == nil {
		return TSGView{}, false
	}
	b := rowsBuilder{s: s, mem: map[memKey]uint64{}}
	var v TSGView
	if r.tsg != nil {
		b.viewTSG(&v, r.tsg)
	} else {
		b.viewContext(&v, r)
	}
	v.Score = [NumWindows]Score{}
	return v, true
}
