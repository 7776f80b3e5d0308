// Command screens makes the pictures in docs/screens: each screen, dark and
// light, of the built-in recording, or of the simulated GPU where there is none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/charmbracelet/colorprofile"

	"tsgtop/actions"
	"tsgtop/actions/journal"
	"tsgtop/internal/recording"
	"tsgtop/internal/recording/demo"
	"tsgtop/internal/sched"
	"tsgtop/internal/shot"
	"tsgtop/internal/sim"
	"tsgtop/themes"
	"tsgtop/ui"
)

// scene is one picture: the keys that lead to it.
type scene struct {
	name, title string
	keys        []string
	lines       int
	acts        bool // something has to be there that can act
}

var scenes = []scene{
	{"tsgs", "the tree of TSGs with the hardware's trace over it and the commands under it", nil, 26, false},
	{"detail", "the detail of one TSG: residency, wait, share and the timeslice's history", []string{"enter"}, 52, false},
	{"calls", "the stream of RM calls", []string{"2"}, 30, false},
	{"score", "the scorecard", []string{"3"}, 30, false},
	{"xid", "Xid errors", []string{"4"}, 20, false},
	{"units", "TSGs gathered by the unit or container that they belong to", []string{"g", "g", "g"}, 30, false},
	{"confirm", "the question before a command is sent", []string{"t", "1", "0", "0", "0", "enter"}, 30, true},
	{"help", "the keys", []string{"?"}, 48, false},
}

func main() {
	out := flag.String("o", "docs/screens", "folder of the pictures")
	seed := flag.Uint64("seed", 7, "of the simulated GPU")
	flag.Parse()
	if err := run(*out, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

func run(out string, seed uint64) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	opts, err := open(ctx, seed)
	if err != nil {
		return err
	}
	acting := opts
	if acting.Controller == nil { // of a recording: the question is asked on a simulated GPU
		if acting, err = simulated(ctx, seed); err != nil {
			return err
		}
	}
	set, err := themes.Builtin()
	if err != nil {
		return err
	}
	for _, name := range []string{"dark", "light"} {
		theme, err := set.Get(name)
		if err != nil {
			return err
		}
		for _, sc := range scenes {
			o := opts
			if sc.acts {
				o = acting
			}
			o.Theme, o.Profile = name, colorprofile.TrueColor
			s, err := shot.NewSession(o, 120, sc.lines)
			if err != nil {
				return err
			}
			if err := s.Press(sc.keys...); err != nil {
				return err
			}
			if err := write(filepath.Join(out, sc.name+"-"+name+".svg"), s.Shoot(), theme, "tsgtop: "+sc.title); err != nil {
				return err
			}
		}
	}
	return nil
}

func write(path string, s *shot.Screen, theme *themes.Theme, title string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return s.SVG(f, theme, title)
}

// open gives the screen something to show.
func open(ctx context.Context, seed uint64) (ui.Options, error) {
	f, err := demo.Open()
	if errors.Is(err, demo.ErrNone) {
		return simulated(ctx, seed)
	}
	if err != nil {
		return ui.Options{}, err
	}
	p, err := recording.NewPlayer(f, "built-in recording", recording.PlayerOptions{Label: "DEMO"})
	if err != nil {
		return ui.Options{}, err
	}
	at, err := moment(ctx, p)
	if err != nil {
		return ui.Options{}, err
	}
	b := sched.NewBoard(nil, sched.Options{})
	if err := p.ReadUntil(ctx, at, b.Feed); err != nil {
		return ui.Options{}, err
	}
	p.Seek(at)
	return ui.Options{Board: b, Player: p, ReadOnly: "a recording cannot be acted on"}, nil
}

// moment is soon after the recording's last verdict, when what came of it fills
// the numbers of the last second; or, without one, when
// two thirds of it are over.
func moment(ctx context.Context, p *recording.Player) (sched.Time, error) {
	_, first, last := p.Position()
	at := first.Add(last.Sub(first) * 2 / 3)
	err := p.ReadUntil(ctx, 0, func(es []sched.Event) {
		for _, e := range es {
			if c, ok := e.(sched.Command); ok && c.Step == sched.StepJudged {
				at = min(c.Time.Add(3*time.Second), last)
			}
		}
	})
	return at, err
}

// simulated lets a simulated GPU run, and sends it a few commands.
func simulated(ctx context.Context, seed uint64) (ui.Options, error) {
	m, err := sim.Open(fmt.Sprintf("tsgs=4,noise=4,speed=10,seed=%d", seed))
	if err != nil {
		return ui.Options{}, err
	}
	b := sched.NewBoard(m, sched.Options{})
	go func() { _ = b.Run(ctx) }() // ends with the program
	c := actions.New(actions.Options{Board: b, Actuator: actions.NewSimulated(m), Journal: journal.Memory(), Clock: m, Keep: true, Me: "ada"})
	for begun := time.Now(); gen(b) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			return ui.Options{}, errors.New("the simulated GPU does not begin")
		}
	}
	if err := m.Sleep(ctx, 30*time.Second); err != nil {
		return ui.Options{}, err
	}
	if err := c.Arm(true); err != nil {
		return ui.Options{}, err
	}
	for _, in := range []actions.Intent{
		{Op: sched.OpTimeslice, Value: sched.Ptr(uint64(400))},
		{Op: sched.OpInterleave, Value: sched.Ptr(uint64(2))},
		{Op: sched.OpPreempt, Count: 40, Every: 50 * time.Millisecond},
	} {
		if in.Gen = gen(b); in.Gen == 0 {
			return ui.Options{}, errors.New("the simulated GPU has no TSG")
		}
		p, err := c.Prepare(in)
		if err != nil {
			return ui.Options{}, err
		}
		id, err := c.Submit(p)
		if err != nil {
			return ui.Options{}, err
		}
		if _, err := c.Wait(ctx, id); err != nil {
			return ui.Options{}, err
		}
		if err := m.Sleep(ctx, 12*time.Second); err != nil {
			return ui.Options{}, err
		}
	}
	return ui.Options{Board: b, Controller: armed{c}}, nil
}

// gen is the generation of the TSG that the commands are for: the first one,
// which the screen selects.
func gen(b *sched.Board) uint64 {
	for _, t := range b.Snapshot(sched.SnapshotOptions{}).TSGs {
		if t.ID.Runlist == 0 && t.ID.GPU == 0 {
			return t.Gen
		}
	}
	return 0
}

// armed is the Controller as the screen asks it, for one question.
type armed struct{ *actions.Controller }

func (c armed) Prepare(in ui.Intent) (ui.Preview, error) {
	p, err := c.Controller.Prepare(actions.Intent{Op: in.Op, Gen: in.Gen, Value: in.Value})
	return ui.Preview{Intent: in, Target: p.Target, Container: p.Cgroup, Old: p.Old, New: p.New, Warnings: p.Warnings, Cost: p.Cost, UndoWords: p.Undo, Actuator: p.Actuator}, err
}

func (c armed) Submit(ui.Preview) (string, error) { return "", errors.New("a picture sends nothing") }
