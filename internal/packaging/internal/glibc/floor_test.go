package glibc

import (
	"os"
	"runtime"
	"testing"
)

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"2.34", "2.4", 1}, {"2.2.5", "2.2", 1}, {"2.34", "2.34", 0}, {"", "2.0", -1}, {"2.36", "10.1", -1}} {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("Compare(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestFloor(t *testing.T) {
	if _, err := Floor("/etc/passwd"); err == nil {
		t.Error("a text has a floor")
	}
	if _, err := os.Stat("/bin/sh"); err != nil || runtime.GOOS != "linux" {
		t.Skip("skip: needs /bin/sh")
	}
	floor, err := Floor("/bin/sh")
	if err != nil || Compare(floor, "2.2") < 0 {
		t.Errorf("/bin/sh needs glibc %q, %v", floor, err)
	}
}
