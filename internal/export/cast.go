package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"tsgtop/internal/sched"
	"tsgtop/ui"
)

// CastOptions say how a recording is played into a cast.
type CastOptions struct {
	Width, Height int
	Theme         string // empty: the default
	ASCII         bool
	NoColor       bool
	FPS           int     // frames a second of the cast; 0: 10
	Speed         float64 // times the recording's own pace; 0: 1
	Keys          []Key   // pressed on the way
	Title         string
	GPUs          map[int]bool
	First, Last   sched.Time // the recording's
	From          sched.Time // begin here; 0: First
}

// Key is a key that is pressed at a time of the cast.
type Key struct {
	At  time.Duration
	Key string // a letter, or a name such as "enter"
}

// keyCodes are the keys that have names.
var keyCodes = map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "space": tea.KeySpace, "backspace": tea.KeyBackspace,
	"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
	"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd}

// ParseKeys reads keys with the times of the cast at which they are pressed:
// "2s:2,5s:down,6s:enter".
func ParseKeys(s string) ([]Key, error) {
	var keys []Key
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		at, key, ok := strings.Cut(part, ":")
		d, err := time.ParseDuration(at)
		if !ok || err != nil || d < 0 || key == "" || keyCodes[key] == 0 && len([]rune(key)) != 1 {
			return nil, fmt.Errorf("key %q: want a time and a key, such as 2s:3 or 500ms:enter", part)
		}
		keys = append(keys, Key{d, key})
	}
	slices.SortStableFunc(keys, func(a, b Key) int { return int(a.At - b.At) })
	return keys, nil
}

func (k Key) message() tea.KeyPressMsg {
	if c, ok := keyCodes[k.Key]; ok {
		m := tea.KeyPressMsg{Code: c}
		if k.Key == "space" {
			m.Text = " "
		}
		return m
	}
	return tea.KeyPressMsg{Code: []rune(k.Key)[0], Text: k.Key}
}

// Cast plays a recording through the screen and writes what a terminal would
// be sent, as an asciicast (version 2) for asciinema and its players.
func Cast(ctx context.Context, src Source, o CastOptions, w io.Writer) error {
	if o.FPS <= 0 {
		o.FPS = 10
	}
	if o.Speed <= 0 || math.IsInf(o.Speed, 0) || math.IsNaN(o.Speed) {
		o.Speed = 1
	}
	c := &caster{o: o, w: bufio.NewWriterSize(w, 256<<10), from: max(o.From, o.First)}
	c.step = sched.Time(float64(time.Second) / float64(o.FPS) * o.Speed)
	c.board = sched.NewBoard(nil, sched.Options{GPUs: o.GPUs})
	profile := colorprofile.TrueColor
	if o.NoColor {
		profile = colorprofile.ASCII
	}
	var err error
	c.model, err = ui.New(ui.Options{Board: c.board, Player: c, Theme: o.Theme, ASCII: o.ASCII, NoColor: o.NoColor, Profile: profile,
		FPS: o.FPS, Speed: o.Speed, ReadOnly: "a recording cannot be acted on"})
	if err != nil {
		return err
	}
	if err := c.header(); err != nil {
		return fmt.Errorf("export cast: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = src(ctx, func(events []sched.Event) {
		for _, e := range events {
			if c.err == nil {
				c.err = c.event(e)
			}
			if c.err != nil {
				stop()
				return
			}
		}
	})
	if c.err == nil && ctx.Err() == nil {
		c.err = c.until(max(c.now, min(o.Last, c.now+c.pause())) + c.step)
	}
	if c.err == nil {
		c.err = c.put("\x1b[0m\x1b[?25h")
	}
	if ferr := c.w.Flush(); c.err == nil {
		c.err = ferr
	}
	if c.err != nil {
		return fmt.Errorf("export cast: %w", c.err)
	}
	return err
}

// caster is the terminal of a cast, and the player that the screen believes in.
type caster struct {
	o     CastOptions
	w     *bufio.Writer
	board *sched.Board
	model *ui.Model
	from  sched.Time
	step  sched.Time // of the recording, between two frames
	now   sched.Time // of the next frame; 0: there was none yet
	frame int
	lines []string // on the screen
	err   error
	one   [1]sched.Event
}

// longestPause is how long a cast shows nothing new: what a recording leaves
// out for longer is cut.
const longestPause = 10 * time.Second

// pause is the longest, on the recording's clock.
func (c *caster) pause() sched.Time { return sched.Time(float64(longestPause) * max(1, c.o.Speed)) }

func (c *caster) event(e sched.Event) error {
	if t := e.When(); t > c.from {
		if c.now == 0 {
			c.now = c.from
			c.model.Update(tea.WindowSizeMsg{Width: c.o.Width, Height: c.o.Height})
		}
		if t <= c.o.Last || c.o.Last == 0 {
			if pause := c.pause(); t-c.now > pause {
				c.now = t - pause
			}
			if err := c.until(t); err != nil {
				return err
			}
		}
	}
	c.one[0] = e
	c.board.Feed(c.one[:])
	return nil
}

// until draws the frames before an instant of the recording.
func (c *caster) until(t sched.Time) error {
	for c.now < t {
		at := time.Duration(c.frame) * time.Second / time.Duration(c.o.FPS)
		for len(c.o.Keys) > 0 && c.o.Keys[0].At <= at {
			c.model.Update(c.o.Keys[0].message())
			c.o.Keys = c.o.Keys[1:]
		}
		if err := c.draw(c.model.Frame()); err != nil {
			return err
		}
		c.frame++
		c.now += c.step
	}
	return nil
}

// draw sends the lines that changed. No line is written to its end and then
// erased: the cursor waits beyond the last cell there.
func (c *caster) draw(screen string) error {
	lines := strings.Split(screen, "\n")
	var b strings.Builder
	for i, l := range lines[:min(len(lines), c.o.Height)] {
		if i < len(c.lines) && c.lines[i] == l {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[0m\x1b[2K%s", i+1, l)
	}
	c.lines = lines
	if b.Len() == 0 {
		return nil
	}
	return c.put(b.String())
}

func (c *caster) header() error {
	h := map[string]any{"version": 2, "width": c.o.Width, "height": c.o.Height,
		"env": map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}}
	if c.o.Title != "" {
		h["title"] = clean(c.o.Title)
	}
	if c.from > 0 {
		h["timestamp"] = int64(c.from) / 1e9
	}
	if err := c.line(h); err != nil {
		return err
	}
	return c.put("\x1b[?25l\x1b[0m\x1b[2J")
}

// put writes one event of output, at the time of the next frame.
func (c *caster) put(s string) error {
	at := float64(c.frame) / float64(c.o.FPS)
	return c.line([]any{math.Round(at*1e6) / 1e6, "o", s})
}

func (c *caster) line(v any) error {
	enc := json.NewEncoder(c.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// The caster as the player of the screen: it cannot be steered, and says where it is.

// Pause implements sched.Player.
func (c *caster) Pause(bool) {}

// SetSpeed implements sched.Player.
func (c *caster) SetSpeed(float64) {}

// Seek implements sched.Player.
func (c *caster) Seek(sched.Time) {}

// Position implements sched.Player.
func (c *caster) Position() (at, first, last sched.Time) {
	return min(max(c.now, c.o.First), max(c.o.Last, c.o.First)), c.o.First, c.o.Last
}
