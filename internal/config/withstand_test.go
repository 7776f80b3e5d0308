package config

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// A HOME that names another's home, whose folders cannot be entered, is as if
// there were no configuration; a file that is there and cannot be read is not.
func TestHomeOfAnother(t *testing.T) {
	o, file := ada(t)
	write(t, file, "fps = 5\n", 0, 0o600)
	if err := os.Chown(o.Home, 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode os.FileMode
		want error
	}{{0o700, nil}, {0o755, fs.ErrPermission}} {
		if err := os.Chmod(o.Home, c.mode); err != nil {
			t.Fatal(err)
		}
		if c2, err := (Loader{Operator: o}).Load(); !errors.Is(err, c.want) || err == nil && len(c2.Flags()) != 0 {
			t.Errorf("home with mode %o: %+v, %v; want %v", c.mode, c2, err, c.want)
		}
	}
}
