package verdict

import (
	"math"
	"math/rand/v2"
	"slices"
)

// sides is a comparison of one number per block, before and after, on the
// logarithmic scale: differences of logarithms are logarithms of ratios.
type sides struct {
	before, after []float64
}

// floorSD is the least standard deviation of a block's logarithm that is
// believed: the trace's clock ticks in 32 ns, and blocks of equal medians
// would otherwise make an interval of no width.
const floorSD = 0.001

func mean(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}

// variance is the unbiased one, of at least floorSD squared.
func variance(x []float64) float64 {
	if len(x) < 2 {
		return math.Inf(1)
	}
	m, s := mean(x), 0.0
	for _, v := range x {
		s += (v - m) * (v - m)
	}
	return max(s/float64(len(x)-1), floorSD*floorSD)
}

// median of x, which it sorts.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
}

// quantile of sorted x.
func quantile(x []float64, q float64) float64 {
	return x[min(len(x)-1, int(q*float64(len(x))))]
}

// lag1 is the correlation of neighbouring blocks, both sides taken together,
// each about its own mean, and lifted by what short series show too little.
func (s sides) lag1() float64 {
	var cross, square float64
	pairs := 0
	for _, x := range [][]float64{s.before, s.after} {
		m := mean(x)
		for i := range x {
			square += (x[i] - m) * (x[i] - m)
			if i > 0 {
				cross += (x[i] - m) * (x[i-1] - m)
				pairs++
			}
		}
	}
	n := len(s.before) + len(s.after)
	if pairs < 4 || square < float64(n)*floorSD*floorSD {
		return 0
	}
	rho := cross / square * float64(n) / float64(pairs)
	return rho + (1+3*max(0, rho))/(float64(n)/2)
}

// welch is the difference of means and its standard error and degrees of
// freedom (Welch and Satterthwaite), the variance widened for the correlation
// of neighbouring blocks that is left.
func (s sides) welch(lag1 float64) (d, se, df float64) {
	n, m := float64(len(s.before)), float64(len(s.after))
	rho := max(0, min(0.9, lag1))
	widen := (1 + rho) / (1 - rho)
	vb, va := variance(s.before)/n*widen, variance(s.after)/m*widen
	d, se = mean(s.after)-mean(s.before), math.Sqrt(vb+va)
	df = (vb + va) * (vb + va) / (vb*vb/(n-1) + va*va/(m-1))
	return d, se, max(1, df/widen)
}

// permutations is how many relabellings are drawn where there are too many to
// try all: p can then reach 1/20,000, below the least level that a look spends.
const permutations = 19999

// permute is the one-sided p of a block permutation test: how often does a
// random relabelling of the blocks differ in the direction (+1 up, -1 down, 0
// either) as much as what was seen, by Welch's studentised difference. All
// relabellings are tried where there are few of them. Never finer than
// 1/(number of relabellings).
func (s sides) permute(direction int) float64 {
	all := slices.Concat(s.before, s.after)
	n, m := len(all), len(s.after)
	// Sums suffice: center first, so that squares do not cancel.
	c := mean(all)
	for i := range all {
		all[i] -= c
	}
	var total, squares float64
	for _, v := range all {
		total += v
		squares += v * v
	}
	score := func(sum, square float64) float64 {
		nb, na := float64(n-m), float64(m)
		ma, mb := sum/na, (total-sum)/nb
		va := max((square-na*ma*ma)/(na-1), floorSD*floorSD)
		vb := max((squares-square-nb*mb*mb)/(nb-1), floorSD*floorSD)
		t := (ma - mb) / math.Sqrt(va/na+vb/nb)
		switch direction {
		case 0:
			return math.Abs(t)
		default:
			return t * float64(direction)
		}
	}
	sums := func(x []float64) (sum, square float64) {
		for _, v := range x {
			sum += v
			square += v * v
		}
		return
	}
	seen := score(sums(all[n-m:]))
	seen -= 1e-9 * math.Abs(seen)
	if ways := binomial(n, m); ways <= permutations {
		atLeast, tried := 0, 0
		combinations(n, m, func(pick []int) {
			var sum, square float64
			for _, i := range pick {
				sum += all[i]
				square += all[i] * all[i]
			}
			tried++
			if score(sum, square) >= seen {
				atLeast++
			}
		})
		return float64(atLeast) / float64(tried)
	}
	r := rand.New(rand.NewPCG(uint64(n), uint64(m))) // the same answer to the same data
	atLeast := 1
	for range permutations {
		for i := range m { // the first m of a partial shuffle
			j := i + r.IntN(n-i)
			all[i], all[j] = all[j], all[i]
		}
		if score(sums(all[:m])) >= seen {
			atLeast++
		}
	}
	return float64(atLeast) / (permutations + 1)
}

// binomial is n over k, or something over permutations if it is large.
func binomial(n, k int) int {
	b := 1
	for i := 1; i <= min(k, n-k); i++ {
		b = b * (n - i + 1) / i
		if b > 1<<40 {
			return b
		}
	}
	return b
}

// combinations calls f with each choice of k out of n.
func combinations(n, k int, f func([]int)) {
	pick := make([]int, k)
	var choose func(at, from int)
	choose = func(at, from int) {
		if at == k {
			f(pick)
			return
		}
		for i := from; i <= n-(k-at); i++ {
			pick[at] = i
			choose(at+1, i+1)
		}
	}
	choose(0, 0)
}

// atLeast is the probability that, of independent events with the given
// probabilities, at least k happen.
func atLeast(p []float64, k int) float64 {
	if k <= 0 {
		return 1
	}
	happen := make([]float64, len(p)+1) // happen[i]: probability of exactly i so far
	happen[0] = 1
	for n, q := range p {
		for i := n + 1; i > 0; i-- {
			happen[i] = happen[i]*(1-q) + happen[i-1]*q
		}
		happen[0] *= 1 - q
	}
	s := 0.0
	for i := len(p); i >= k; i-- {
		s += happen[i]
	}
	return min(1, s)
}
