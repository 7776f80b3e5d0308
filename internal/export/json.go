package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

// JSON writes a recording's lines, decompressed, each checked and made safe to
// print: what `zstdcat FILE` prints of a recording that can be trusted.
func JSON(ctx context.Context, r *recording.Reader, w io.Writer) error {
	buf := bufio.NewWriterSize(w, 256<<10)
	t, err := recording.NewTextWriter(buf, r.Header())
	if err != nil {
		return fmt.Errorf("export json: %w", err)
	}
	var one [1]sched.Event
	for ctx.Err() == nil {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, buf.Flush())
		}
		one[0] = e
		if err := t.Write(one[:]); err != nil {
			return fmt.Errorf("export json: %w", err)
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("export json: %w", err)
	}
	return ctx.Err()
}
