package vmtest

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// maxAgain is how many tests are tried again at most: more that fail are no
// matter of slow emulation.
const maxAgain = 4

// TryAgain runs the tests of a report that failed once more, in a machine of
// their own. What passes then is moved to Passed and named in Retried. What the
// kernel complained of is never tried again, and stays.
func TryAgain(ctx context.Context, o Options, first *Report) (*Report, error) {
	tops := topLevel(first.Failed)
	if len(tops) == 0 || len(tops) > maxAgain || len(first.Problems) > 0 {
		return first, nil
	}
	o.Run = "^(" + strings.Join(tops, "|") + ")$"
	o.LogDir += ".again"
	second, err := Run(ctx, o)
	if err != nil {
		return first, err
	}
	return merge(first, second), nil
}

// topLevel gives the names of the tests to which failed ones belong.
func topLevel(failed []string) []string {
	var tops []string
	for _, f := range failed {
		top, _, _ := strings.Cut(f, "/")
		if top = regexp.QuoteMeta(top); !slices.Contains(tops, top) {
			tops = append(tops, top)
		}
	}
	return tops
}

// merge takes the second try's word for what failed at the first.
func merge(first, second *Report) *Report {
	r := *first
	r.Failed = nil
	for _, f := range first.Failed {
		if slices.Contains(second.Passed, f) {
			r.Passed = append(slices.Clip(r.Passed), f)
			r.Retried = append(r.Retried, f)
		} else {
			r.Failed = append(r.Failed, f)
		}
	}
	for _, f := range second.Failed {
		if !slices.Contains(r.Failed, f) {
			r.Failed = append(r.Failed, f)
		}
	}
	r.Problems = append(slices.Clip(r.Problems), second.Problems...)
	return &r
}
