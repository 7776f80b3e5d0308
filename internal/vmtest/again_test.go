package vmtest

import (
	"slices"
	"testing"
)

func TestMerge(t *testing.T) {
	first := &Report{Passed: []string{"TestA"}, Failed: []string{"TestB/x", "TestB", "TestC"}}
	got := merge(first, &Report{Passed: []string{"TestB/x", "TestB", "TestB/y"}, Failed: []string{"TestC", "TestB/z"}, Problems: []string{"kernel: BUG: x"}})
	if !slices.Equal(got.Passed, []string{"TestA", "TestB/x", "TestB"}) || !slices.Equal(got.Retried, []string{"TestB/x", "TestB"}) {
		t.Errorf("passed %v, retried %v", got.Passed, got.Retried)
	}
	if !slices.Equal(got.Failed, []string{"TestC", "TestB/z"}) || len(got.Problems) != 1 || got.OK() {
		t.Errorf("failed %v, problems %v", got.Failed, got.Problems)
	}
	if tops := topLevel(first.Failed); !slices.Equal(tops, []string{"TestB", "TestC"}) {
		t.Errorf("tops %v", tops)
	}
	// A test that ran in neither way stays failed.
	if got := merge(first, &Report{}); len(got.Failed) != 3 {
		t.Errorf("failed %v", got.Failed)
	}
}
