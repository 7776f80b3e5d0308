package doctest

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"tsgtop/internal/recording"
	"tsgtop/internal/recording/demo"
	"tsgtop/internal/sched"
)

// recorded are the sentences that the commands of the built-in recording ended
// with: of each lamp, and the evidence.
func recorded(t *testing.T) []string {
	t.Helper()
	f, err := demo.Open()
	if errors.Is(err, demo.ErrNone) {
		t.Skip(demoNote + ": " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []string
	err = recording.ReadAll(context.Background(), r, 0, func(es []sched.Event) {
		for _, e := range es {
			if c, ok := e.(sched.Command); ok && c.Step == sched.StepJudged {
				all = append(all, c.Ran.Why, c.Accepted.Why, c.Changed.Why, c.Changed.Evidence)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("the built-in recording has no command")
	}
	return all
}

// Each line of a block marked recorded is what a command of the built-in
// recording ended with, to the letter.
func TestRecordedLamps(t *testing.T) {
	all := recorded(t)
	quoted := 0
	for _, path := range documents(t) {
		name, _ := filepath.Rel(root, path)
		bs, err := blocks(read(t, path))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, b := range bs {
			if b.kind != "recorded" {
				continue
			}
			for i, l := range b.lines {
				quoted++
				if l == "" || !slices.Contains(all, l) {
					t.Errorf("%s:%d: no command of the built-in recording ended with %q", name, b.line+i, l)
				}
			}
		}
	}
	if quoted == 0 {
		t.Fatal("no document quotes the built-in recording")
	}
}
