package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

func newRecord(o *options) *cobra.Command {
	var out string
	var span time.Duration
	var scrub bool
	var maxBytes int64
	var calls bool
	c := &cobra.Command{
		Use:   "record -o FILE",
		Short: "Write a recording, without a screen",
		Long: `record writes what the screen needs to FILE: zstd-compressed JSON lines, to be
read with tsgtop replay, tsgtop export, or zstdcat FILE | jq. It ends after
--for, or with Ctrl-C. The file must not exist.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" {
				return fail(exitUsage, "record: -o FILE is needed")
			}
			s, err := o.open(false, recording.PlayerOptions{AsFastAsPossible: true})
			if err != nil {
				return err
			}
			defer s.close()
			w, err := recording.Create(out, recording.WriterOptions{Scrub: scrub, Args: o.args, MaxBytes: maxBytes, ToolVersion: version})
			if err != nil {
				return fail(exitUsage, "record: %w", err)
			}
			n, err := o.record(c.Context(), s, w, span, calls)
			if cerr := w.Close(); err == nil && cerr != nil {
				err = fail(exitUsage, "record: %s: %w", out, cerr)
			}
			fmt.Fprintf(o.err, "tsgtop: %d events written to %s\n", n, out)
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "file to write")
	f.DurationVar(&span, "for", 0, "how long (default: until interrupted)")
	f.BoolVar(&scrub, "scrub", false, "leave out user and host names")
	f.Int64Var(&maxBytes, "max-bytes", 0, "start another file (FILE.1, ...) after this many bytes; 0: never")
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
	untap := s.board.Tap(func(es []sched.Event) {
		if werr != nil {
			return
		}
		n += len(es)
		if werr = w.Write(es); werr != nil {
			stop()
		}
	})
	defer untap()
	if s.live != nil {
		go o.releaseOnSignal(ctx, s.live)
		go o.sayReady(ctx, s)
	}
	err := s.board.Run(ctx)
	if werr != nil {
		return n, fail(exitUsage, "record: %w", werr)
	}
	return n, err
}
