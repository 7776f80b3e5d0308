package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

func newRecord(o *options) *cobra.Command {
	var out string
	var span time.Duration
	var scrub bool
	var maxBytes int64
	var calls, counters bool
	var ring ringOptions
	c := &cobra.Command{
		Use:   "record -o FILE",
		Short: "Write a recording, without a screen",
		Long: `record writes what the screen needs to FILE: zstd-compressed JSON lines, to be
read with tsgtop replay, tsgtop export, or zstdcat FILE | jq. It ends after
--for, or with Ctrl-C. The file must not exist.

With --last, nothing is written until something happens: the last while is kept
in memory, compressed, and written on Ctrl-\ (SIGQUIT), with --on-xid when a GPU
reports an Xid, and, without it, at the end. Each further time it goes to
FILE.2, FILE.3 and so on, at most --max-files of them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case out == "":
				return fail(exitUsage, "record: -o FILE is needed")
			case ring.Span < 0 || ring.after < 0 || maxBytes < 0 || ring.most < 1:
				return fail(exitUsage, "record: --last, --after and --max-bytes cannot be negative, and --max-files is at least 1")
			case ring.Span == 0 && ring.onXid:
				return fail(exitUsage, "record: --on-xid writes what --last keeps; give --last, such as --last 60s")
			}
			s, err := o.open(false, recording.PlayerOptions{AsFastAsPossible: true})
			if err != nil {
				return err
			}
			defer s.close()
			if counters {
				if s.isRecording() {
					return fail(exitUsage, "record: --counters: the source is a recording, which has the GSP's counters or not")
				}
				if l, ok := s.src.(sched.CounterLooker); ok { // the simulated GPU tells them anyway
					l.LookCounters(true)
					defer l.LookCounters(false)
				}
			}
			if ring.Span > 0 {
				ring.out, ring.Scrub, ring.Args, ring.MaxBytes = out, scrub, o.args, int(min(maxBytes, 1<<40))
				ctx, cancel := c.Context(), func() {}
				if span > 0 {
					ctx, cancel = context.WithTimeout(ctx, span)
				}
				defer cancel()
				return o.keepLast(ctx, s, ring, calls)
			}
			w, err := recording.Create(out, recording.WriterOptions{Scrub: scrub, Args: o.args, MaxBytes: maxBytes, MaxFiles: ring.most, ToolVersion: version})
			if err != nil {
				return fail(exitUsage, "record: %w", err)
			}
			if err := s.seal(privdrop.Options{}); err != nil {
				return err
			}
			n, err := o.record(c.Context(), s, w, span, calls)
			if cerr := w.Close(); err == nil && cerr != nil {
				err = fail(exitUsage, "record: %s: %w", out, cerr)
			}
			o.say("%d events written to %s", n, out)
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "file to write")
	f.DurationVar(&span, "for", 0, "how long (default: until interrupted)")
	f.BoolVar(&scrub, "scrub", false, "leave out user and host names")
	f.Int64Var(&maxBytes, "max-bytes", 0, "start another file (FILE.1, ...) after this many bytes; 0: never. With --last: memory to keep it in; 0: 64 MiB")
	f.IntVar(&ring.most, "max-files", 8, "files to keep with --max-bytes; files to write at most with --last")
	f.DurationVar(&ring.Span, "last", 0, "keep this much in memory instead, and write it when asked to (Ctrl-\\)")
	f.BoolVar(&ring.onXid, "on-xid", false, "with --last: write when a GPU reports an Xid")
	f.DurationVar(&ring.after, "after", 5*time.Second, "with --on-xid: go on for so long after the Xid before writing")
	f.BoolVar(&counters, "counters", false, "read the GSP's switch counters of each TSG once a second, and record them: one RPC each, through a descriptor borrowed from its process")
	f.BoolVar(&calls, "calls", true, "record all RM calls, not only those that shape scheduling")
	return c
}

// record pumps the source into the writer; it gives the number of events.
func (o *options) record(ctx context.Context, s *opened, w *recording.Writer, span time.Duration, calls bool) (int, error) {
	if span > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, span)
		defer cancel()
	}
	if l, ok := s.src.(sched.Looker); ok && calls {
		l.Look(true)
		defer l.Look(false)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var n int
	var werr error
	untap := s.board.Join(func(es []sched.Event) {
		if werr != nil {
			return
		}
		n += len(es)
		if werr = w.Write(es); werr != nil {
			stop()
		}
	})
	defer untap()
	blind := s.watchProbes(ctx, stop)
	if s.live != nil {
		go o.releaseOnSignal(ctx, s.live)
		go o.sayReady(ctx, s)
	}
	err := s.board.Run(ctx)
	if b := blind(); b != nil {
		return n, b
	}
	if werr != nil {
		return n, fail(exitUsage, "record: %w", werr)
	}
	return n, err
}
