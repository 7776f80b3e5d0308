package sched

import (
	"math"
	"math/bits"
	"sort"
)

// binsPerOctave sets the resolution of histograms: bounds are 2^(1/350) = 1.00198
// apart, so the middle of a bin is within 0.1% of every value in it.
const binsPerOctave = 350

// numBins covers 1 ns to 2^42 ns (73 minutes); what is longer falls in the last bin.
const numBins = 42 * binsPerOctave

// binMantissa holds the lower bounds of one octave's bins, as 63-bit fractions
// of the octave's start; binGuess says where to start looking, by the first 8
// bits below the leading one.
var binMantissa, binGuess = func() (m [binsPerOctave + 1]uint64, g [256]uint16) {
	for i := range binsPerOctave {
		m[i] = uint64(math.Ceil(math.Exp2(float64(i)/binsPerOctave)*(1<<62))) << 1
	}
	m[0] = 1 << 63
	m[binsPerOctave] = math.MaxUint64
	for i := range g {
		low := uint64(1)<<63 | uint64(i)<<55
		b := 0
		for b+1 < binsPerOctave && m[b+1] <= low {
			b++
		}
		g[i] = uint16(b)
	}
	return m, g
}()

// binOf gives the bin of a duration in nanoseconds.
func binOf(ns int64) int {
	if ns <= 1 {
		return 0
	}
	octave := bits.Len64(uint64(ns)) - 1
	if octave >= numBins/binsPerOctave {
		return numBins - 1
	}
	m := uint64(ns) << (63 - octave)
	b := int(binGuess[m>>55&255])
	for b+1 < binsPerOctave && binMantissa[b+1] <= m {
		b++
	}
	return octave*binsPerOctave + b
}

// binFrom is a bin's lower bound, in microseconds.
func binFrom(bin int) float64 {
	return math.Exp2(float64(bin)/binsPerOctave) / 1e3
}

// binMiddle is the value that stands for a bin, in microseconds: the geometric
// mean of its bounds.
var binMiddle = func() (m [numBins]float64) {
	for i := range m {
		m[i] = math.Exp2((float64(i)+0.5)/binsPerOctave) / 1e3
	}
	return m
}()

type binCount struct {
	bin uint16
	n   uint32
}

// hist collects durations: exact count, mean, deviation, extremes, and a sparse
// histogram for percentiles. Times of one kind cluster, so few bins are in use.
type hist struct {
	n        uint64
	mean, m2 float64 // of microseconds, after Welford
	min, max float64
	bins     []binCount // by bin
	last     int        // where the last value went: the next one is often near
}

func (h *hist) reset() {
	*h = hist{bins: h.bins[:0]}
}

// add takes in a duration in nanoseconds.
func (h *hist) add(ns int64) {
	us := float64(ns) / 1e3
	h.n++
	if h.n == 1 {
		h.min, h.max = us, us
	} else {
		h.min, h.max = min(h.min, us), max(h.max, us)
	}
	d := us - h.mean
	h.mean += d / float64(h.n)
	h.m2 += d * (us - h.mean)
	h.count(uint16(binOf(ns)), 1)
}

func (h *hist) count(bin uint16, n uint32) {
	if h.last < len(h.bins) && h.bins[h.last].bin == bin {
		h.bins[h.last].n += n
		return
	}
	i := sort.Search(len(h.bins), func(i int) bool { return h.bins[i].bin >= bin })
	h.last = i
	if i < len(h.bins) && h.bins[i].bin == bin {
		h.bins[i].n += n
		return
	}
	h.bins = append(h.bins, binCount{})
	copy(h.bins[i+1:], h.bins[i:])
	h.bins[i] = binCount{bin, n}
}

// merge adds what o holds.
func (h *hist) merge(o *hist) {
	if o.n == 0 {
		return
	}
	h.mergeMoments(o.n, o.mean, o.m2, o.min, o.max)
	for _, b := range o.bins {
		h.count(b.bin, b.n)
		h.last++
	}
}

// mergeMoments joins count, mean and deviation as Chan, Golub and LeVeque do.
func (h *hist) mergeMoments(n uint64, mean, m2, lo, hi float64) {
	if h.n == 0 {
		h.n, h.mean, h.m2, h.min, h.max = n, mean, m2, lo, hi
		return
	}
	total := h.n + n
	d := mean - h.mean
	h.m2 += m2 + d*d*float64(h.n)*float64(n)/float64(total)
	h.mean += d * float64(n) / float64(total)
	h.n = total
	h.min, h.max = min(h.min, lo), max(h.max, hi)
}

// pool joins many hists for one answer. It is dense, and used again and again.
type pool struct {
	hist
	counts  [numBins]uint64
	touched [(numBins + 63) / 64]uint64
}

func (p *pool) reset() {
	for w, word := range p.touched {
		for word != 0 {
			p.counts[w*64+bits.TrailingZeros64(word)] = 0
			word &= word - 1
		}
		p.touched[w] = 0
	}
	p.n = 0
}

func (p *pool) join(o *hist) {
	if o.n == 0 {
		return
	}
	p.mergeMoments(o.n, o.mean, o.m2, o.min, o.max)
	for _, b := range o.bins {
		p.counts[b.bin] += uint64(b.n)
		p.touched[b.bin>>6] |= 1 << (b.bin & 63)
	}
}

// each visits the bins in use, in order.
func (p *pool) each(f func(bin int, n uint64)) {
	for w, word := range p.touched {
		for word != 0 {
			bin := w*64 + bits.TrailingZeros64(word)
			word &= word - 1
			f(bin, p.counts[bin])
		}
	}
}

// stats writes the summary of what was joined to s.
func (p *pool) stats(s *Stats) {
	*s = Stats{N: p.n, Min: p.min, Mean: p.mean, Max: p.max}
	if p.n > 1 {
		s.StdDev = math.Sqrt(p.m2 / float64(p.n-1))
	}
	// Nearest rank: the smallest value that at least q of all do not exceed.
	rank := func(q float64) uint64 { return max(1, uint64(math.Ceil(q*float64(p.n)))) }
	ranks := [...]uint64{rank(.50), rank(.95), rank(.99)}
	out := [...]*float64{&s.P50, &s.P95, &s.P99}
	k, seen := 0, uint64(0)
	for w, word := range p.touched {
		for word != 0 {
			bin := w*64 + bits.TrailingZeros64(word)
			word &= word - 1
			seen += p.counts[bin]
			for k < len(ranks) && seen >= ranks[k] {
				*out[k] = min(max(binMiddle[bin], p.min), p.max)
				k++
			}
			if k == len(ranks) {
				return
			}
		}
	}
}

// shownBins is how many bins make one of a Histogram that is shown: 50, so
// that there are 7 to the octave.
const shownBins = 50

// histogram gives the counts for showing, without the empty bins at both ends.
func (p *pool) histogram() Histogram {
	h := Histogram{Total: p.n}
	next := -1 // the group that would follow the last bin
	for w, word := range p.touched {
		for word != 0 {
			bin := w*64 + bits.TrailingZeros64(word)
			word &= word - 1
			group := bin / shownBins
			if next < 0 {
				next = group
			}
			for ; next <= group; next++ {
				h.Bins = append(h.Bins, Bin{From: binFrom(next * shownBins), To: binFrom((next + 1) * shownBins)})
			}
			h.Bins[len(h.Bins)-1].N += p.counts[bin]
		}
	}
	return h
}
