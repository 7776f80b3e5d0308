package stat

import "math/rand/v2"

// permutations is how many relabellings are drawn: p can then reach 1/20,000.
const permutations = 19999

// LeastBlocks is how many blocks a side needs for them to be relabelled.
const LeastBlocks = 4

// Permute is the one-sided p of a block permutation test: how often a random
// relabelling of blocks makes the two sides as far apart as they were seen. What
// hangs together within a block stays together. 1 where a side has fewer than
// LeastBlocks; never finer than 1/20,000; the same answer to the same data.
func Permute[T any](before, after []T, apart func(before, after []T) float64) float64 {
	n, m := len(after), len(before)
	if n < LeastBlocks || m < LeastBlocks {
		return 1
	}
	all := append(append(make([]T, 0, m+n), before...), after...)
	seen := apart(all[:m], all[m:])
	r := rand.New(rand.NewPCG(uint64(n), uint64(m)))
	atLeast := 1
	for range permutations {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if apart(all[:m], all[m:]) >= seen-1e-9 {
			atLeast++
		}
	}
	return float64(atLeast) / (permutations + 1)
}

// tooAlike is the correlation of neighbouring blocks over which they are joined, and
// leastJoined how many a side must have for that.
const (
	tooAlike    = 0.25
	leastJoined = 10
)

// Unlike joins neighbouring blocks on both sides, two by two, until the numbers that
// they give are no more alike from one to the next than chance makes them, or few are
// left. number's ok is false for a block that gives none.
func Unlike[T any](before, after []T, number func(T) (x float64, ok bool), join func(a, b T) T) (_, _ []T) {
	alike := func(blocks []T) float64 {
		var x []float64
		for _, b := range blocks {
			if v, ok := number(b); ok {
				x = append(x, v)
			}
		}
		return Alike(x)
	}
	joined := func(blocks []T) (out []T) {
		for i := 0; i+1 < len(blocks); i += 2 {
			out = append(out, join(blocks[i], blocks[i+1]))
		}
		return out
	}
	for max(alike(before), alike(after)) > tooAlike && min(len(before), len(after)) >= leastJoined {
		before, after = joined(before), joined(after)
	}
	return before, after
}

// Alike is the correlation of neighbours, lifted by what short series show too
// little; 0 where there are fewer than four numbers, or all are the same.
func Alike(x []float64) float64 {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	cross, square := 0.0, 0.0
	for i, v := range x {
		square += (v - mean) * (v - mean)
		if i > 0 {
			cross += (v - mean) * (x[i-1] - mean)
		}
	}
	if len(x) < 4 || square < 1e-12 {
		return 0
	}
	rho := cross / square
	return rho + (1+3*max(0, rho))/float64(len(x))
}
