package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tsgtop/internal/sched"
)

// CSVHeader names the columns of CSV.
var CSVHeader = []string{"gpu", "runlist", "tsg", "pid", "exe", "context", "start_ns", "end_ns", "residency_us", "ended_by", "clean"}

// CSV writes the turns, one a line, with a line of column names. Times are
// nanoseconds since the Unix epoch; what is not known is empty. A turn that is
// not clean touches a gap in the trace: its times are not to be trusted.
func CSV(ctx context.Context, src Source, gpus map[int]bool, from sched.Time, w io.Writer) error {
	buf := bufio.NewWriterSize(w, 64<<10)
	c := &csvWriter{w: csv.NewWriter(buf)}
	if err := c.w.Write(CSVHeader); err != nil {
		return err
	}
	err := Walk(ctx, src, gpus, from, c)
	c.w.Flush()
	if werr := c.w.Error(); werr != nil {
		return fmt.Errorf("export csv: %w", werr)
	}
	if werr := buf.Flush(); werr != nil {
		return fmt.Errorf("export csv: %w", werr)
	}
	return err
}

type csvWriter struct {
	w    *csv.Writer
	line [11]string
}

func (c *csvWriter) Turn(t Turn) error {
	pid := ""
	if t.Row.PID > 0 {
		pid = strconv.Itoa(t.Row.PID)
	}
	runlist := t.Lane.Runlist
	if runlist == sched.Unknown {
		runlist = t.Row.ID.Runlist
	}
	c.line = [11]string{
		known(t.Lane.GPU), known(runlist), known(t.Row.ID.TSG), pid, cell(t.Row.Exe), strconv.FormatUint(uint64(t.Context), 10),
		strconv.FormatInt(int64(t.Start), 10), strconv.FormatInt(int64(t.End), 10),
		strconv.FormatFloat(float64(t.End-t.Start)/1e3, 'f', 3, 64), endedBy(t.EndedBy), strconv.FormatBool(t.Clean),
	}
	if err := c.w.Write(c.line[:]); err != nil {
		return fmt.Errorf("export csv: %w", err)
	}
	return nil
}

func known(n int) string {
	if n == sched.Unknown {
		return ""
	}
	return strconv.Itoa(n)
}

// cell keeps a spreadsheet from taking a process's name for a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func (c *csvWriter) Gap(Lane, sched.Time) error   { return nil }
func (c *csvWriter) Command(*sched.Command) error { return nil }
func (c *csvWriter) Xid(*sched.Xid) error         { return nil }
func (c *csvWriter) Tie(*sched.ClockTie) error    { return nil }
func (c *csvWriter) Tick(*sched.Snapshot) error   { return nil }
