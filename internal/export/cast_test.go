package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"tsgtop/internal/sched"
)

// cast is an asciicast, read back.
type cast struct {
	header struct {
		Version, Width, Height int
		Timestamp              int64
		Title                  string
	}
	events []castEvent
}

type castEvent struct {
	at   float64
	data string
}

func readCast(t *testing.T, b []byte) cast {
	t.Helper()
	var c cast
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 1<<20)
	for n := 0; sc.Scan(); n++ {
		if n == 0 {
			if err := json.Unmarshal(sc.Bytes(), &c.header); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var e []any
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil || len(e) != 3 || e[1] != "o" {
			t.Fatalf("line %d: %v: %.80s", n+1, err, sc.Text())
		}
		ev := castEvent{e[0].(float64), e[2].(string)}
		if k := len(c.events); k > 0 && ev.at < c.events[k-1].at {
			t.Fatalf("line %d goes back in time", n+1)
		}
		c.events = append(c.events, ev)
	}
	if c.header.Version != 2 {
		t.Fatalf("version %d", c.header.Version)
	}
	return c
}

// screenAt is what a terminal of the cast's size shows at a time of it.
func (c cast) screenAt(seconds float64) string {
	e := vt.NewEmulator(c.header.Width, c.header.Height)
	for _, ev := range c.events {
		if ev.at > seconds {
			break
		}
		e.WriteString(ev.data)
	}
	return e.String()
}

func castOf(t *testing.T, events []sched.Event, o CastOptions) (cast, []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := Cast(context.Background(), sourceOf(events), o, &b); err != nil {
		t.Fatal(err)
	}
	return readCast(t, b.Bytes()), b.Bytes()
}

func TestCast(t *testing.T) {
	events := machineEvents(t, "tsgs=3", 12*time.Second)
	for _, c := range []struct {
		w, h  int
		speed float64
		ascii bool
	}{{120, 40, 1, false}, {80, 24, 2, false}, {60, 15, 0.5, true}, {200, 50, 4, false}} {
		o := CastOptions{Width: c.w, Height: c.h, Speed: c.speed, ASCII: c.ascii, First: story0, Last: story0 + 12e9, Title: "x\x1b[2J",
			Keys: []Key{{time.Second, "3"}, {2 * time.Second, "esc"}}}
		got, raw := castOf(t, events, o)
		if got.header.Width != c.w || got.header.Height != c.h || got.header.Timestamp != int64(story0)/1e9 || strings.Contains(got.header.Title, "\x1b") {
			t.Errorf("header %+v", got.header)
		}
		if last := got.events[len(got.events)-1].at; last < 12/c.speed-0.5 || last > 12/c.speed+0.5 {
			t.Errorf("speed %g: it lasts %g s", c.speed, last)
		}
		screen := got.screenAt(1e9)
		lines := strings.Split(screen, "\n")
		if len(lines) != c.h {
			t.Errorf("%d lines, want %d", len(lines), c.h)
		}
		for _, want := range []string{"tsgtop", "SIMULATED", "train.py", "serve"} {
			if !strings.Contains(strings.ToUpper(screen), strings.ToUpper(want)) {
				t.Errorf("%dx%d: no %q on the last screen:\n%s", c.w, c.h, want, screen)
			}
		}
		if at, later := got.screenAt(0.9), got.screenAt(1.5); at == later || !strings.Contains(later, "residency") && !strings.Contains(later, "RESIDENCY") {
			t.Errorf("the key did not open the scorecard:\n%s", later)
		}
		if c.ascii {
			for _, r := range screen {
				if r > 126 && r != '\n' {
					t.Fatalf("%q in ASCII", r)
				}
			}
		}
		if perSecond := len(raw) / 12; c.w == 120 && perSecond > 60_000 {
			t.Errorf("%d bytes for a second", perSecond)
		}
	}
}

// A pause of hours in a recording is cut, not sat through.
func TestCastCutsPauses(t *testing.T) {
	events := machineEvents(t, "", 2*time.Second)
	at := events[len(events)-1].When() + 3600e9
	events = append(events, sched.TraceBatch{Time: at, GPU: 0}, sched.Xid{Time: at, GPU: 0, Code: 31})
	got, _ := castOf(t, events, CastOptions{Width: 80, Height: 24, First: story0, Last: at})
	if last := got.events[len(got.events)-1].at; last < 2 || last > 14 {
		t.Errorf("it lasts %g s", last)
	}
}

func TestParseKeys(t *testing.T) {
	keys, err := ParseKeys(" 5s:enter, 500ms:2,1s:?")
	if err != nil || len(keys) != 3 || keys[0] != (Key{500 * time.Millisecond, "2"}) || keys[2].Key != "enter" {
		t.Errorf("%v, %v", keys, err)
	}
	for _, bad := range []string{"2", "x:2", "1s:", "1s:nokey", "-1s:2"} {
		if _, err := ParseKeys(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestCastRefusesAThemeThatIsNone(t *testing.T) {
	err := Cast(context.Background(), sourceOf(nil), CastOptions{Width: 80, Height: 24, Theme: "none such"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "no theme of that name") {
		t.Errorf("%v", err)
	}
}

// asciinema plays a cast to a terminal, which then shows the same as ours.
func TestAsciinemaPlaysACast(t *testing.T) {
	program, err := exec.LookPath("asciinema")
	if err != nil {
		t.Skip("skip: needs asciinema (Debian package asciinema)")
	}
	got, raw := castOf(t, machineEvents(t, "", 3*time.Second), CastOptions{Width: 100, Height: 30, First: story0, Last: story0 + 3e9})
	path := filepath.Join(t.TempDir(), "x.cast")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "play", "-s", "1000", path)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		t.Skipf("skip: needs pseudo-terminals: %v", err)
	}
	defer tty.Close()
	e := vt.NewEmulator(100, 30)
	buf := make([]byte, 64<<10)
	for {
		n, err := tty.Read(buf)
		e.Write(buf[:n])
		if err != nil {
			break // the child closed its side
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("asciinema play: %v\n%s", err, e.String())
	}
	if want := got.screenAt(1e9); e.String() != want {
		t.Errorf("asciinema shows\n%s\nwant\n%s", e.String(), want)
	}
}
