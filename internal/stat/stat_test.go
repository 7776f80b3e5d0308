package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %.6g, want %.6g", what, got, want)
	}
}

// From the printed tables of Student's t.
func TestStudent(t *testing.T) {
	for _, row := range []struct{ tail, df, want float64 }{
		{0.025, 1, 12.706}, {0.025, 10, 2.228}, {0.005, 5, 4.032}, {0.0005, 10, 4.587}, {0.0005, 30, 3.646}, {0.0005, 1000, 3.300}, {0.05, 4, 2.132},
		{0.005, 4, 4.604}, {0.005, 2, 9.925}, {0.005, 1, 63.657}, {0.005, 30, 2.750},
	} {
		near(t, "quantile", StudentQuantile(row.tail, row.df), row.want, 0.001)
		near(t, "tail", StudentTail(row.want, row.df), row.tail, row.tail/500)
	}
}

func ups(_, after []float64) (sum float64) {
	for _, x := range after {
		sum += x
	}
	return sum
}

func normal(r *rand.Rand, n int, mean float64) (x []float64) {
	for range n {
		x = append(x, mean+r.NormFloat64())
	}
	return x
}

func TestPermute(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	if p := Permute(normal(r, 20, 0), normal(r, 20, 9), ups); p != 1.0/20000 {
		t.Errorf("far apart: %g", p)
	}
	if p := Permute(normal(r, 20, 0), normal(r, 20, -9), ups); p < 0.999 {
		t.Errorf("the wrong way: %g", p)
	}
	if p := Permute(make([]float64, 20), make([]float64, 20), ups); p != 1 {
		t.Errorf("all equal: %g", p)
	}
	if p := Permute(normal(r, LeastBlocks-1, 0), normal(r, 20, 9), ups); p != 1 {
		t.Errorf("too few: %g", p)
	}
	// Under the null, p is below a level as often as the level says.
	below, n := 0, 200
	for range n {
		if Permute(normal(r, 24, 0), normal(r, 9, 0), ups) < 0.05 {
			below++
		}
	}
	if below < 3 || below > 22 {
		t.Errorf("p below 0.05 in %d of %d null trials", below, n)
	}
}

func TestUnlikeJoinsWhatHangsTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	is := func(x float64) (float64, bool) { return x, true }
	mid := func(a, b float64) float64 { return (a + b) / 2 }
	before, after := Unlike(normal(r, 40, 0), normal(r, 40, 0), is, mid)
	if len(before) != 40 || len(after) != 40 {
		t.Errorf("independent ones are joined: %d and %d", len(before), len(after))
	}
	var slow []float64
	for x := 0.0; len(slow) < 160; {
		x = 0.9*x + r.NormFloat64()
		slow = append(slow, x)
	}
	before, after = Unlike(slow, normal(r, 160, 0), is, mid)
	if len(before) > 40 || len(after) != len(before) || len(before) < leastJoined/2 {
		t.Errorf("slow ones: %d and %d are left", len(before), len(after))
	}
	for name, x := range map[string][]float64{"few": {1, 2, 3}, "all alike": make([]float64, 50), "none": nil} {
		if a := Alike(x); a != 0 {
			t.Errorf("%s: %g", name, a)
		}
	}
}
