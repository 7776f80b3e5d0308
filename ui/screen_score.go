package ui

import (
	"fmt"
	"strconv"

	"tsgtop/internal/sched"
)

// metric is the quantity whose scorecard is shown.
type metric uint8

const (
	metricResidency metric = iota
	metricWait
	metricOff
	numMetrics
)

var metricWords = [numMetrics]string{
	"residency: length of turns",
	"wait: off the engine after a turn that its timeslice or a preempt ended",
	"off: off the engine, for whatever reason",
}

// scoreScreen is the scorecard: per TSG min, mean, max, standard deviation and
// percentiles of one metric, with share and turns beside; per GPU the switch tax.
type scoreScreen struct {
	table
	metric metric
}

func newScoreScreen(c *Common) *scoreScreen {
	s := &scoreScreen{}
	s.table = table{Common: c, shape: shape{flat: true, sort: "share", desc: true}}
	s.choose()
	return s
}

func (s *scoreScreen) choose() {
	ids := []string{"pid", "process"}
	for _, st := range scoreStats {
		ids = append(ids, scoreID(s.metric, st.id))
	}
	s.columns = append(ids, "forced", "voluntary", "share", "turns", "turnsall", "user", "unit")
	s.natural = s.columns
}

func (s *scoreScreen) nextMetric() {
	s.metric = (s.metric + 1) % numMetrics
	s.choose()
	if _, ok := columnByID(s.sort); ok && !contains(s.columns, s.sort) {
		s.sort, s.desc = "share", true
	}
	s.say(roleDim, metricWords[s.metric])
	s.refresh()
}

func contains(ids []string, id string) bool {
	for _, s := range ids {
		if s == id {
			return true
		}
	}
	return false
}

func (s *scoreScreen) lines(m *Model) []string {
	title := "score " + s.signs.dot + " " + metricWords[s.metric] + " " + s.signs.dot + " " + windowWords[s.window]
	over := append(s.gpuLines(s.gpu()), s.rule(title))
	return m.frameOf(over, s.taxLines(), s.selected(), func(height int) []string {
		return s.table.lines(height, &m.tsgs.lane.slots)
	})
}

// taxLines is the switch tax of the GPU that is looked at, in each window.
func (s *scoreScreen) taxLines() []string {
	g := s.Common.gpu(s.gpu())
	if g == nil {
		return nil
	}
	l := s.line().put(roleDim, fmt.Sprintf(" GPU%d switch tax", g.Index))
	if s.Common.width >= 110 {
		l.put(roleDim, " (share of competed time with nobody resident)")
	}
	for w, name := range [sched.NumWindows]string{"1 s", "10 s", "all"} {
		v := s.signs.dash
		if t := g.SwitchTax[w]; t != nil {
			v = percent(*t)
		}
		l.put(roleDim, "  "+name+" ").right(rolePlain, v, 6)
	}
	if t := s.selected(); t != nil {
		if why := t.Score[s.window].SwitchesWhy; why != "" && l.room() > 30 {
			l.cut(roleDim, "   forced "+s.signs.dash+" "+s.own(why), l.room()-1)
		}
	}
	return []string{l.String()}
}

// scoreStats are the columns of a scorecard.
var scoreStats = []struct {
	id, title string
	rank      int
	of        func(*sched.Stats) float64
}{
	{"n", "N", 6, func(s *sched.Stats) float64 { return float64(s.N) }},
	{"min", "MIN", 8, func(s *sched.Stats) float64 { return s.Min }},
	{"mean", "MEAN", 3, func(s *sched.Stats) float64 { return s.Mean }},
	{"sd", "SD", 7, func(s *sched.Stats) float64 { return s.StdDev }},
	{"p50", "P50", 3, func(s *sched.Stats) float64 { return s.P50 }},
	{"p95", "P95", 3, func(s *sched.Stats) float64 { return s.P95 }},
	{"p99", "P99", 4, func(s *sched.Stats) float64 { return s.P99 }},
	{"max", "MAX", 5, func(s *sched.Stats) float64 { return s.Max }},
}

func scoreID(m metric, stat string) string {
	return [numMetrics]string{"res", "wait", "off"}[m] + "-" + stat
}

func statsOf(m metric, s *sched.Score) *sched.Stats {
	switch m {
	case metricWait:
		return s.Wait
	case metricOff:
		return s.Off
	default:
		return s.Residency
	}
}

// scoreColumns are columns of the score screen only.
var scoreColumns = func() []column {
	var cols []column
	for m := range numMetrics {
		for _, st := range scoreStats {
			c := statColumn(scoreID(m, st.id), st.title, 8, st.rank, func(s *sched.Score) *sched.Stats { return statsOf(m, s) },
				func(c *Common, s *sched.Stats) string { return c.micros(st.of(s)) }, st.of)
			c.group = func(c *Common, r *row) string {
				s := merged(r.of, func(t *sched.TSGView) *sched.Stats { return statsOf(m, &t.Score[c.window]) })
				if r.sum != nil && s != nil {
					if all := statsOf(m, r.sum); all != nil {
						s = all
					}
				}
				switch {
				case s == nil:
					return c.signs.dash
				case st.id == "n":
					return count(s.N)
				default:
					return c.orDash(sched.Ptr(st.of(s)), c.micros)
				}
			}
			if st.id == "n" {
				c.cell = func(c *Common, t *sched.TSGView) (string, role) {
					if s := statsOf(m, &t.Score[c.window]); s != nil {
						return count(s.N), rolePlain
					}
					return "", roleDim
				}
			}
			cols = append(cols, c)
		}
	}
	cols = append(cols,
		switchColumn("forced", "FORCED", 5, func(s *sched.Switches) uint64 { return s.Forced }),
		switchColumn("voluntary", "VOLUNT", 5, func(s *sched.Switches) uint64 { return s.Voluntary }))
	return append(cols, column{id: "turnsall", title: "TURNS", width: 7, rank: 9, highFirst: true,
		cell: func(c *Common, t *sched.TSGView) (string, role) {
			if s := &t.Score[c.window]; s.Residency != nil || s.Turns > 0 {
				return strconv.FormatUint(s.Turns, 10), rolePlain
			}
			return "", roleDim
		},
		compare: func(c *Common, a, b *sched.TSGView) int {
			return int(min(max(int64(a.Score[c.window].Turns)-int64(b.Score[c.window].Turns), -1), 1))
		}})
}()
