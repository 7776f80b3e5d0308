package trial

import (
	"fmt"
	"math"

	"tsgtop/internal/stat"
)

// level is that of all intervals: 99%, two-sided.
const level99 = 0.99

// What counts as an effect, and what as none, as logarithms of ratios: 10% and 5%.
var (
	effectLog = math.Log(1 / 0.9)
	noneLog   = math.Log(1.05)
)

// floorSD is the least standard deviation of a logarithm that is believed.
const floorSD = 0.001

// Effect is one metric of one arm against the baseline of the same rounds.
type Effect struct {
	Metric string      `json:"metric"`
	Base   *float64    `json:"base"`  // mean of the rounds; null: not to be had
	Value  *float64    `json:"value"` // likewise
	Ratio  *float64    `json:"ratio"` // geometric mean over rounds
	CI     *[2]float64 `json:"ci"`    // of the ratio
	Level  float64     `json:"ci_level,omitempty"`
	N      int         `json:"n"` // pairs of runs
	Why    string      `json:"why,omitempty"`
}

// minPairs is the fewest pairs of runs that give an interval.
const minPairs = 3

// effectOf compares pairs of values: base and arm, of one round each.
func effectOf(metric string, base, value []float64) Effect {
	e := Effect{Metric: metric, N: len(base)}
	if len(base) == 0 {
		e.Why = "no round has it in both"
		return e
	}
	var b, v float64
	var logs []float64
	for i := range base {
		b += base[i] / float64(len(base))
		v += value[i] / float64(len(base))
		if base[i] > 0 && value[i] > 0 {
			logs = append(logs, math.Log(value[i]/base[i]))
		}
	}
	e.Base, e.Value = &b, &v
	if len(logs) < minPairs || len(logs) < len(base) {
		e.Why = fmt.Sprintf("%d pairs of runs can be compared by ratio; %d are needed", len(logs), max(minPairs, len(base)))
		return e
	}
	m, s := 0.0, 0.0
	for _, x := range logs {
		m += x / float64(len(logs))
	}
	for _, x := range logs {
		s += (x - m) * (x - m)
	}
	n := float64(len(logs))
	se := math.Max(floorSD, math.Sqrt(s/(n-1))) / math.Sqrt(n)
	wide := stat.StudentQuantile((1-level99)/2, n-1) * se
	e.Ratio, e.CI, e.Level = ptr(math.Exp(m)), &[2]float64{math.Exp(m - wide), math.Exp(m + wide)}, level99
	return e
}

func ptr(x float64) *float64 { return &x }

// shift is what an effect comes to.
type shift int

const (
	shiftUnknown shift = iota
	shiftUp
	shiftDown
	shiftNone
)

// shift tells whether the metric changed by 10% or more, or is shown to be the
// same within 5%.
func (e Effect) shift() shift {
	if e.CI == nil {
		return shiftUnknown
	}
	low, high, at := math.Log(e.CI[0]), math.Log(e.CI[1]), math.Log(*e.Ratio)
	switch {
	case low > 0 && at >= effectLog:
		return shiftUp
	case high < 0 && at <= -effectLog:
		return shiftDown
	case low >= -noneLog && high <= noneLog:
		return shiftNone
	}
	return shiftUnknown
}

func (e Effect) String() string {
	switch {
	case e.Base == nil:
		return "-"
	case e.CI == nil:
		return fmt.Sprintf("%s -> %s", short(*e.Base), short(*e.Value))
	}
	return fmt.Sprintf("%s -> %s (x%.3f, 99%% CI %.3f-%.3f, %d pairs)", short(*e.Base), short(*e.Value), *e.Ratio, e.CI[0], e.CI[1], e.N)
}

// short is a number of at most four digits that count.
func short(x float64) string {
	switch a := math.Abs(x); {
	case a >= 100:
		return fmt.Sprintf("%.0f", x)
	case a >= 1:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.3f", x)
}
