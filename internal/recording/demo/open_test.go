package demo

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

func TestWithoutARecording(t *testing.T) {
	for what, from := range map[string]fstest.MapFS{"missing": {}, "empty": {name: {}}} {
		if _, err := read(from); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestBuiltIn plays what is really built in, where something is.
func TestBuiltIn(t *testing.T) {
	r, err := Open()
	if errors.Is(err, ErrNone) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := recording.NewPlayer(r, name, recording.PlayerOptions{AsFastAsPossible: true})
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	err = p.Run(context.Background(), func(events []sched.Event) {
		for _, e := range events {
			if b, ok := e.(sched.TraceBatch); ok {
				records += len(b.Records)
			}
		}
	})
	if err != nil || records == 0 {
		t.Errorf("%d trace records, %v", records, err)
	}
}
