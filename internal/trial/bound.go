package trial

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tsgtop/internal/steer"
)

// Bound is what an arm may not do: it is stopped then, and not run again.
type Bound struct {
	Metric   string  `json:"metric"`
	Over     bool    `json:"over"` // too large; otherwise too small
	Value    float64 `json:"value"`
	Relative bool    `json:"relative"` // Value is times the baseline's
}

// ParseBound reads "METRIC > VALUE" or "METRIC < VALUE"; a value with an x is
// times that of the baseline.
func ParseBound(s string) (Bound, error) {
	bad := fmt.Errorf("bound %q: want METRIC > VALUE or METRIC < VALUE, such as \"wait_p99_us > 5000\" or \"share < 0.5x\"", s)
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return Bound{}, bad
	}
	b := Bound{Metric: strings.TrimSpace(s[:i]), Over: s[i] == '>'}
	v := strings.TrimSpace(s[i+1:])
	if rest, ok := strings.CutSuffix(v, "x"); ok {
		b.Relative, v = true, rest
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || x < 0 || x > 1e12 {
		return b, bad
	}
	b.Value = x
	if !slices.Contains(Metrics, b.Metric) && !strings.HasPrefix(b.Metric, probePrefix) {
		return b, fmt.Errorf("bound %q: there is no such metric%s; there are %s, and probe:NAME:p50, p99 and mean", s, steer.Suggest(b.Metric, Metrics), strings.Join(Metrics, ", "))
	}
	return b, nil
}

func (b Bound) String() string {
	op, x := "<", ""
	if b.Over {
		op = ">"
	}
	if b.Relative {
		x = "x"
	}
	return fmt.Sprintf("%s %s %g%s", b.Metric, op, b.Value, x)
}

// Broken tells whether a value is out of the bound. base is the baseline's; nil
// where there is none yet.
func (b Bound) Broken(value, base *float64) bool {
	if value == nil || b.Relative && base == nil {
		return false
	}
	limit := b.Value
	if b.Relative {
		limit *= *base
	}
	if b.Over {
		return *value > limit
	}
	return *value < limit
}
