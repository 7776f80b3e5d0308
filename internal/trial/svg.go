package trial

import (
	"fmt"
	"html"
	"io"
	"math"

	"tsgtop/internal/text"
)

// Sizes of the plot, in pixels.
const (
	plotLeft   = 210
	plotWidth  = 560
	plotRow    = 18
	plotHead   = 34
	plotFoot   = 34
	plotMargin = 20
)

// SVG draws each metric of each arm as a ratio to the baseline, with its interval:
// the rounds as small dots, the mean as a large one. The scale is logarithmic.
func (r *Report) SVG(w io.Writer) {
	panels := []int{}
	if len(r.Arms) > 0 {
		for k := range r.Arms[0].Effects {
			for i := range r.Arms {
				if !r.Arms[i].Idle() && r.Arms[i].Effects[k].CI != nil {
					panels = append(panels, k)
					break
				}
			}
		}
	}
	arms := []int{}
	for i := range r.Arms {
		if !r.Arms[i].Idle() {
			arms = append(arms, i)
		}
	}
	panelHeight := plotHead + len(arms)*plotRow + plotFoot
	height := plotMargin + len(panels)*panelHeight + plotMargin
	width := plotLeft + plotWidth + 40
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintln(w, `<rect width="100%" height="100%" fill="white"/>`)
	for n, k := range panels {
		r.panel(w, k, arms, plotMargin+n*panelHeight)
	}
	fmt.Fprintln(w, "</svg>")
}

// panel draws one metric.
func (r *Report) panel(w io.Writer, k int, arms []int, top int) {
	metric := r.Arms[0].Effects[k].Metric
	reach := math.Log(1.2)
	for _, i := range arms {
		if e := r.Arms[i].Effects[k]; e.CI != nil {
			reach = max(reach, math.Abs(math.Log(e.CI[0])), math.Abs(math.Log(e.CI[1])))
		}
	}
	reach = min(reach, math.Log(1000)) * 1.05
	x := func(ratio float64) float64 {
		l := max(-reach, min(reach, math.Log(max(ratio, 1e-9))))
		return plotLeft + plotWidth/2 + l/reach*plotWidth/2
	}
	label := func(px float64, py int, anchor, color, s string) {
		fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="%s" fill="%s">%s</text>`+"\n", px, py, anchor, color, html.EscapeString(text.Clean(s)))
	}
	fmt.Fprintf(w, `<text x="%d" y="%d" font-weight="bold">%s, ratio to the baseline</text>`+"\n", plotMargin, top+14, html.EscapeString(text.Clean(metric)))
	bottom := top + plotHead + len(arms)*plotRow
	// The band is what counts as no effect: within 5%.
	fmt.Fprintf(w, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#eeeeee"/>`+"\n", x(1/1.05), top+plotHead-8, x(1.05)-x(1/1.05), bottom-top-plotHead+8)
	for _, tick := range ticks(reach) {
		fmt.Fprintf(w, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#bbbbbb"/>`+"\n", x(tick), top+plotHead-8, x(tick), bottom)
		label(x(tick), bottom+14, "middle", "#555555", fmt.Sprintf("x%g", tick))
	}
	for n, i := range arms {
		y := top + plotHead + n*plotRow + 4
		label(plotLeft-8, y+4, "end", "black", r.Arms[i].Name)
		e := r.Arms[i].Effects[k]
		if e.CI == nil {
			label(plotLeft+4, y+4, "start", "#777777", "not to be compared")
			continue
		}
		for _, ratio := range r.ratios(r.Arms[i].Name, metric) {
			fmt.Fprintf(w, `<circle cx="%.1f" cy="%d" r="1.8" fill="#88aacc"/>`+"\n", x(ratio), y)
		}
		fmt.Fprintf(w, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#1b4f8a" stroke-width="2"/>`+"\n", x(e.CI[0]), y, x(e.CI[1]), y)
		fmt.Fprintf(w, `<circle cx="%.1f" cy="%d" r="4" fill="#1b4f8a"><title>%s</title></circle>`+"\n", x(*e.Ratio), y, html.EscapeString(e.String()))
	}
}

// ratios are those of the single rounds.
func (r *Report) ratios(arm, metric string) (out []float64) {
	base := map[pairKey]float64{}
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Arm == r.Plan.Arms[0].Name && x.Useless == "" {
			base[pairKey{x.Round, x.Target}] = x.Values[metric]
		}
	}
	for i := range r.Runs {
		x := &r.Runs[i]
		if b := base[pairKey{x.Round, x.Target}]; x.Arm == arm && x.Useless == "" && b > 0 && x.Values[metric] > 0 {
			out = append(out, x.Values[metric]/b)
		}
	}
	return out
}

// ticks are round ratios on a logarithmic scale.
func ticks(reach float64) []float64 {
	all := []float64{0.001, 0.01, 0.1, 1, 10, 100, 1000}
	switch {
	case reach < math.Log(1.6):
		all = []float64{0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5}
	case reach < math.Log(12):
		all = []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}
	}
	var out []float64
	for _, t := range all {
		if math.Abs(math.Log(t)) <= reach {
			out = append(out, t)
		}
	}
	return out
}
