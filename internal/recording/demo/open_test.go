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
	for name, from := range map[string]fstest.MapFS{"missing": {}, "empty": {name: {}}} {
		if _, err := open(from, recording.PlayerOptions{}); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := open(fstest.MapFS{name: {Data: []byte("hello")}}, recording.PlayerOptions{}); !errors.Is(err, recording.ErrForeign) {
		t.Errorf("foreign: %v", err)
	}
}

// TestBuiltIn plays what is really built in, where something is.
func TestBuiltIn(t *testing.T) {
	p, err := Open(recording.PlayerOptions{})
	if errors.Is(err, ErrNone) {
		if _, err := Reader(); !errors.Is(err, ErrNone) {
			t.Errorf("Reader: %v", err)
		}
		return
	}
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
