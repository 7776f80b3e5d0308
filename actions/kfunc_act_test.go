//go:build linux

package actions

import (
	"errors"
	"testing"

	"tsgtop/actions/kfunc"
	"tsgtop/internal/sched"
)

// TestKFuncBounds: what may be asked for is what the module takes, and nothing is
// changed that it would not take back.
func TestKFuncBounds(t *testing.T) {
	if MinForcedUS != kfunc.MinTimesliceUS || MaxForcedUS != kfunc.MaxTimesliceUS {
		t.Errorf("with force %d to %d us may be asked for, and the module takes %d to %d us", MinForcedUS, MaxForcedUS, kfunc.MinTimesliceUS, kfunc.MaxTimesliceUS)
	}
	for _, x := range []struct {
		now  *uint64
		fine bool
	}{
		{nil, true}, {sched.Ptr(uint64(1)), true}, {sched.Ptr(uint64(2048)), true}, {sched.Ptr(uint64(100_000_000)), true},
		{sched.Ptr(uint64(0)), false}, {sched.Ptr(uint64(100_000_001)), false}, {sched.Ptr(uint64(1 << 63)), false},
	} {
		if err := reversible(x.now); (err == nil) != x.fine || err != nil && !errors.Is(err, ErrBounds) {
			t.Errorf("it is %s us: %v", numberOr(x.now, "unknown"), err)
		}
	}
}
