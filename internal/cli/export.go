package cli

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/export"
	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/recording/demo"
	"tsgtop/internal/sched"
)

type exportFlags struct {
	to, out, size, at, keys string
	span                    time.Duration
	speed                   float64
}

func newExport(o *options) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export FILE|demo --to perfetto|cast|csv|json -o OUT",
		Short: "A recording in other tools' formats: Perfetto, asciicast, CSV, JSON lines",
		Long: `export reads a recording (demo: the built-in one) and writes it as

    perfetto  a trace for ui.perfetto.dev and trace_processor
    cast      an asciicast (version 2) of the screen, for asciinema play
    csv       one line for each turn on an engine
    json      the recording's events, one a line

to OUT, which must not exist; - is the standard output. It needs no root, and
gives it up where it has it. --speed, --size, --keys and --theme are for cast:
--keys 2s:3,5s:down presses 3 after two seconds of the cast and the arrow after
five.`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"demo"},
		RunE: func(c *cobra.Command, args []string) error {
			return o.export(c.Context(), args[0], f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.to, "to", "", "format: perfetto, cast, csv or json")
	fl.StringVarP(&f.out, "output", "o", "", "file to write; - is the standard output")
	fl.StringVar(&f.at, "at", "", "begin here: seconds from the recording's start, or a time (not for json)")
	fl.DurationVar(&f.span, "for", 0, "end after this much of the recording (not for json)")
	fl.StringVar(&f.size, "size", "120x40", "cast: columns and lines")
	fl.Float64Var(&f.speed, "speed", 1, "cast: times the recording's own pace")
	fl.StringVar(&f.keys, "keys", "", "cast: keys to press, each with its time: 2s:3,5s:down")
	_ = c.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{"perfetto", "cast", "csv", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *options) export(ctx context.Context, name string, f exportFlags) (err error) {
	switch f.to {
	case "perfetto", "cast", "csv", "json":
	case "":
		return fail(exitUsage, "export: --to is needed: perfetto, cast, csv or json")
	default:
		return fail(exitUsage, "export: --to %q: there are perfetto, cast, csv and json", f.to)
	}
	if f.out == "" {
		return fail(exitUsage, "export: -o OUT is needed; - is the standard output")
	}
	if f.span < 0 || f.to == "json" && (f.at != "" || f.span != 0) {
		return fail(exitUsage, "export: --for cannot be negative, and --at and --for are not for json, which is the whole recording")
	}
	gpus, err := o.gpuSet()
	if err != nil {
		return err
	}
	src, closeSource, err := openRecording(name)
	if err != nil {
		return err
	}
	defer closeSource()

	out, finish, err := o.exportTo(f.out)
	if err != nil {
		return err
	}
	defer func() { err = finish(err) }()
	if dropRoot != nil {
		if err := dropRoot(privdrop.Options{}); err != nil {
			return fail(exitInternal, "a recording is not read as root, and root could not be given up: %w", err)
		}
	}
	if f.to == "json" {
		r, err := recording.NewReader(src)
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		defer r.Close()
		return partly(export.JSON(ctx, r, out))
	}
	p, err := recording.NewPlayer(src, name, recording.PlayerOptions{Label: exportLabel(name)})
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	s := &opened{player: p}
	from, err := s.until(f.at)
	if err != nil {
		return err
	}
	_, first, last := p.Position()
	until := sched.Time(0)
	if f.span > 0 {
		until = max(from, first).Add(f.span)
		last = min(last, until)
	}
	events := func(ctx context.Context, sink func([]sched.Event)) error { return p.ReadUntil(ctx, until, sink) }
	switch f.to {
	case "perfetto":
		err = export.Perfetto(ctx, events, gpus, from, out)
	case "csv":
		err = export.CSV(ctx, events, gpus, from, out)
	case "cast":
		co, cerr := o.castOptions(f)
		if cerr != nil {
			return cerr
		}
		co.GPUs, co.First, co.Last, co.From, co.Title = gpus, first, last, from, "tsgtop "+name
		err = export.Cast(ctx, events, co, out)
	}
	if err == nil {
		err = ctx.Err()
	}
	return partly(err)
}

// partly says that what comes before an error is there all the same.
func partly(err error) error {
	var damaged *recording.Error
	if errors.As(err, &damaged) {
		return fail(exitUsage, "%w (what was good before it is exported)", err)
	}
	return err
}

func exportLabel(name string) string {
	if name == "demo" {
		return "DEMO"
	}
	return ""
}

// openRecording opens a recording that is named on the command line.
func openRecording(name string) (io.Reader, func(), error) {
	if name == "demo" {
		r, err := demo.Open()
		if err != nil {
			return nil, nil, fail(exitInternal, "built-in recording: %w", err)
		}
		return r, func() {}, nil
	}
	f, err := recording.OpenFile(name)
	if err != nil {
		return nil, nil, fail(exitUsage, "%w", err)
	}
	return f, func() { f.Close() }, nil
}

// exportTo opens where the export goes. finish closes it, and takes away what
// was written where that is nothing.
func (o *options) exportTo(path string) (io.Writer, func(error) error, error) {
	if path == "-" {
		return o.out, func(err error) error { return err }, nil
	}
	var owner *export.Owner
	if id := privdrop.Target(os.Getenv); os.Geteuid() == 0 && id.Sudo {
		owner = &export.Owner{UID: id.UID, GID: id.GID}
	}
	f, err := export.Create(path, owner)
	if err != nil {
		return nil, nil, fail(exitUsage, "%w", err)
	}
	return f, func(err error) error {
		if st, serr := f.Stat(); err != nil && serr == nil && st.Size() == 0 {
			os.Remove(path) // made a moment ago; without root it may stay
		}
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fail(exitUsage, "export: %w", cerr)
		}
		return err
	}, nil
}

// Bounds of a cast's size, in cells.
const (
	castLeastWidth, castMostWidth   = 60, 500
	castLeastHeight, castMostHeight = 15, 200
)

func (o *options) castOptions(f exportFlags) (export.CastOptions, error) {
	var co export.CastOptions
	w, h, ok := strings.Cut(f.size, "x")
	width, err1 := strconv.Atoi(w)
	height, err2 := strconv.Atoi(h)
	if !ok || err1 != nil || err2 != nil || width < castLeastWidth || width > castMostWidth || height < castLeastHeight || height > castMostHeight {
		return co, fail(exitUsage, "--size %q: want columns and lines, %dx%d to %dx%d, such as 120x40", f.size,
			castLeastWidth, castLeastHeight, castMostWidth, castMostHeight)
	}
	if !(f.speed > 0) || math.IsInf(f.speed, 0) || f.speed > 1e6 {
		return co, fail(exitUsage, "--speed %g: want more than 0", f.speed)
	}
	if o.fps < 1 || o.fps > 60 {
		return co, fail(exitUsage, "--fps %d: want 1 to 60", o.fps)
	}
	keys, err := export.ParseKeys(f.keys)
	if err != nil {
		return co, fail(exitUsage, "--keys: %w", err)
	}
	return export.CastOptions{Width: width, Height: height, Theme: o.theme, ASCII: o.ascii, NoColor: o.noColor, FPS: o.fps, Speed: f.speed, Keys: keys}, nil
}
