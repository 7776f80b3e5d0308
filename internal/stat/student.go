// Package stat has the statistics that several judgements share. It is pure: the same
// input gives the same answer.
package stat

import "math"

// StudentQuantile is the value that a Student t of so many degrees of freedom
// stays below with probability 1-tail.
func StudentQuantile(tail, df float64) float64 {
	low, high := 0.0, 1e6
	for range 80 {
		mid := (low + high) / 2
		if StudentTail(mid, df) > tail {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// StudentTail is the probability that Student's t is over x >= 0.
func StudentTail(x, df float64) float64 {
	return incompleteBeta(df/2, 0.5, df/(df+x*x)) / 2
}

// incompleteBeta is the regularised one, by its continued fraction (Lentz).
func incompleteBeta(a, b, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := 0; i <= 300; i++ {
		m := float64(i / 2)
		var num float64
		switch {
		case i == 0:
			num = 1
		case i%2 == 0:
			num = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			num = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		if d = 1 + num*d; math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		if c = 1 + num/c; math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if math.Abs(1-c*d) < 1e-12 {
			break
		}
	}
	return front * (f - 1)
}
