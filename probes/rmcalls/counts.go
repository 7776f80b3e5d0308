package rmcalls

import (
	"errors"
	"fmt"
	"sort"

	"github.com/cilium/ebpf"

	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

// counter gives what the kernel has counted since it was asked last.
type counter struct {
	counts *ebpf.Map
	last   map[bpf.RMCallsRmSort]bpf.RMCallsRmCount
}

func newCounter(counts *ebpf.Map) *counter {
	return &counter{counts: counts, last: map[bpf.RMCallsRmSort]bpf.RMCallsRmCount{}}
}

// since gives the counts since the last call of it, by kind and number.
func (c *counter) since() (sched.CallCounts, error) {
	out := sched.CallCounts{Time: sched.Now()}
	var key bpf.RMCallsRmSort
	var perCPU []bpf.RMCallsRmCount
	it := c.counts.Iterate()
	for it.Next(&key, &perCPU) {
		var sum bpf.RMCallsRmCount
		for _, v := range perCPU {
			sum.N += v.N
			sum.Failed += v.Failed
			sum.Ns += v.Ns
		}
		last := c.last[key]
		if sum.N > last.N {
			out.Counts = append(out.Counts, sched.CallCount{
				Kind: sched.CallKind(key.Kind), Number: key.Number,
				N: sum.N - last.N, Failed: sum.Failed - last.Failed, NS: sum.Ns - last.Ns,
			})
			c.last[key] = sum
		}
	}
	if err := it.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return out, fmt.Errorf("reading the counts of RM calls: %w", err)
	}
	sort.Slice(out.Counts, func(i, j int) bool {
		a, b := out.Counts[i], out.Counts[j]
		return a.Kind < b.Kind || a.Kind == b.Kind && a.Number < b.Number
	})
	return out, nil
}
