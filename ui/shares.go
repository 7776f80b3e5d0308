package ui

import (
	"slices"

	"tsgtop/internal/sched"
)

// shareScale is the room left of the picture, for its scale.
const shareScale = 6

// shares is the picture of the share of competed time over the last 5 minutes,
// newest at the right, one to some seconds a cell.
func (s *detailScreen) shares(d *sched.Detail) []string {
	title := " share of competed time, last 5 min"
	rows := 3
	if s.height < 30 {
		rows = 1
	}
	known := false
	for _, p := range d.Share {
		known = known || p.Share != nil
	}
	if !known {
		return []string{s.line().put(roleHead, title).put(roleDim, "  nothing competed").String()}
	}
	width := max(s.width-shareScale-2, 1)
	cells := shareCells(d.Share, width)
	levels := len(s.signs.levels)
	out := []string{s.line().put(roleHead, title).String()}
	for r := rows - 1; r >= 0; r-- {
		l := s.line()
		switch {
		case r == rows-1:
			l.right(roleDim, "100%", shareScale-1)
		case r == 0:
			l.right(roleDim, "0%", shareScale-1)
		}
		l.to(shareScale).gap(width - len(cells))
		for _, c := range cells {
			switch fill := min(int(min(c, 0.9999)*float64(rows*levels))+1-r*levels, levels); {
			case c < 0 && r == 0:
				l.put(roleDim, s.signs.dot) // nothing competed
			case c < 0 || fill <= 0:
				l.put(rolePlain, " ")
			default:
				l.put(roleBar, s.signs.levels[fill-1])
			}
		}
		out = append(out, l.String())
	}
	return out
}

// shareCells takes the mean of as many seconds for each cell as brings them
// all into width cells; -1: nothing competed.
func shareCells(points []sched.SharePoint, width int) []float64 {
	per := max((len(points)+width-1)/width, 1)
	var out []float64
	for end := len(points); end > 0; end -= per {
		var sum, n float64
		for _, p := range points[max(end-per, 0):end] {
			if p.Share != nil {
				sum += max(*p.Share, 0)
				n++
			}
		}
		mean := -1.0
		if n > 0 {
			mean = sum / n
		}
		out = append(out, mean)
	}
	slices.Reverse(out)
	return out
}
