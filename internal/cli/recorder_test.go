package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

// machine is a simulated GPU at a fixed time, and the board that it feeds.
func machine(t *testing.T) (*sim.Machine, *sched.Board) {
	t.Helper()
	c := sim.Default()
	c.Start = sched.Time(1_800_000_000e9)
	m, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m, sched.NewBoard(m, sched.Options{})
}

// treeOf names the TSGs of a snapshot with all that does not come from turns.
func treeOf(t *testing.T, s *sched.Snapshot) string {
	t.Helper()
	l := s.LS(sched.Window10s)
	for i := range l.TSGs {
		v := &l.TSGs[i]
		v.ResidencyUS, v.WaitUS, v.Share, v.TurnsPerS, v.WhyNull = nil, nil, nil, nil, ""
	}
	b, err := json.Marshal([]any{l.TSGs, l.Host})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func replayed(t *testing.T, path string) (*sched.Snapshot, *recording.Player) {
	t.Helper()
	p, err := recording.OpenPlayer(path, recording.PlayerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	b := sched.NewBoard(p, sched.Options{})
	if err := p.ReadUntil(context.Background(), 0, b.Feed); err != nil {
		t.Fatal(err)
	}
	return b.Snapshot(sched.SnapshotOptions{}), p
}

// A recording that begins in the middle shows what was there before it, at its
// own times.
func TestRecorderBeginsInTheMiddle(t *testing.T) {
	m, b := machine(t)
	b.Feed(m.Advance(5 * time.Second))
	r := newRecorder(b, t.TempDir(), recording.WriterOptions{ToolVersion: "v"})
	if _, err := r.Stop(); err == nil {
		t.Error("it stopped what had not begun")
	}
	began := b.Snapshot(sched.SnapshotOptions{}).Time
	path, err := r.Start()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Start(); err == nil || again != path {
		t.Errorf("a second start: %q, %v", again, err)
	}
	b.Feed(m.Advance(2 * time.Second))
	stopped, err := r.Stop()
	if err != nil || stopped != path {
		t.Fatalf("%q, %v", stopped, err)
	}
	b.Feed(m.Advance(time.Second)) // not recorded any more

	snap, p := replayed(t, path)
	if got, want := treeOf(t, snap), treeOf(t, b.Snapshot(sched.SnapshotOptions{})); got != want {
		t.Errorf("the replay has\n%s\nwant\n%s", got, want)
	}
	_, first, last := p.Position()
	if first != began || last.Sub(first) < 1900*time.Millisecond || last.Sub(first) > 2100*time.Millisecond {
		t.Errorf("it goes from %v after the beginning for %v", first.Sub(began), last.Sub(first))
	}
	if s := snap.TSGs[0].Score[sched.Window10s].Share; s == nil || *s < 0.3 || *s > 0.7 {
		t.Errorf("share %v", s)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestRecorderNeverReplaces(t *testing.T) {
	m, b := machine(t)
	b.Feed(m.Advance(time.Second))
	dir := t.TempDir()
	r := newRecorder(b, dir, recording.WriterOptions{})
	r.now = func() time.Time { return time.Date(2026, 11, 29, 15, 4, 5, 0, time.UTC) }
	// A link that somebody laid where the recording would go.
	target := filepath.Join(dir, "precious")
	if err := os.Symlink(target, filepath.Join(dir, "tsgtop-20261129-150405.tsg.zst")); err != nil {
		t.Fatal(err)
	}
	path, err := r.Start()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "tsgtop-20261129-150405-2.tsg.zst"); path != want {
		t.Errorf("%s, want %s", path, want)
	}
	var said []string
	r.end(func(l string) { said = append(said, l) })
	if len(said) != 1 || !strings.Contains(said[0], path) {
		t.Errorf("%q", said)
	}
	r.end(func(l string) { t.Error("it ended twice: " + l) })
	if _, err := os.Lstat(target); err == nil {
		t.Error("it wrote through a symbolic link")
	}
}

func TestRecorderWhereNothingCanBeWritten(t *testing.T) {
	_, b := machine(t)
	r := newRecorder(b, "/proc/nowhere", recording.WriterOptions{})
	if path, err := r.Start(); err == nil || !strings.Contains(err.Error(), "/proc/nowhere") {
		t.Errorf("%q, %v", path, err)
	}
	if _, err := r.Stop(); err == nil {
		t.Error("it stopped what had not begun")
	}
}

// A disk that fills up ends the recording, not the screen, and is shown.
func TestRecorderOnAFullDisk(t *testing.T) {
	m, b := machine(t)
	b.Feed(m.Advance(time.Second))
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("skip: mount: needs to mount a small file system: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	r := newRecorder(b, dir, recording.WriterOptions{})
	if _, err := r.Start(); err != nil {
		t.Fatal(err)
	}
	said := func() bool {
		for _, p := range b.Snapshot(sched.SnapshotOptions{}).Probes {
			if p.Probe == "recording" && strings.Contains(p.Why, "no space") {
				return true
			}
		}
		return false
	}
	for deadline := time.Now().Add(15 * time.Second); !said(); {
		if time.Now().After(deadline) {
			t.Fatal("nothing was said")
		}
		b.Feed(m.Advance(5 * time.Second))
		time.Sleep(time.Millisecond)
	}
	if _, err := r.Stop(); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("%v", err)
	}
}

// ringOf feeds a ringRecorder without a process around it.
func ringOf(t *testing.T, ro ringOptions) (*ringRecorder, *sched.Board, *sim.Machine) {
	t.Helper()
	m, b := machine(t)
	b.Feed(m.Advance(2 * time.Second))
	ring, err := recording.NewRing(recording.Header{}, ro.RingOptions)
	if err != nil {
		t.Fatal(err)
	}
	r := &ringRecorder{opts: ro, ring: ring, due: make(chan string, 1), say: func(l string) { t.Log(l) }}
	t.Cleanup(b.Join(r.take))
	return r, b, m
}

func TestRingOnXid(t *testing.T) {
	out := filepath.Join(t.TempDir(), "last.tsg.zst")
	r, b, m := ringOf(t, ringOptions{RingOptions: recording.RingOptions{Span: 10 * time.Second}, out: out, onXid: true, most: 2})
	b.Feed(m.Advance(30 * time.Second))
	now := b.Snapshot(sched.SnapshotOptions{}).Time
	xid := sched.Xid{Time: now, GPU: 0, Code: 109, Text: "CTX SWITCH TIMEOUT"}
	for i := range 3 {
		b.Feed([]sched.Event{xid, xid}) // a storm is one
		why := <-r.due
		if !strings.Contains(why, "Xid 109") {
			t.Errorf("%q", why)
		}
		err := r.write(why)
		if (err != nil) != (i == 2) {
			t.Errorf("write %d: %v", i, err)
		}
		b.Feed(m.Advance(time.Second))
	}
	for _, path := range []string{out, out + ".2"} {
		snap, p := replayed(t, path)
		_, first, last := p.Position()
		if d := last.Sub(first); d < 9*time.Second || d > 13*time.Second {
			t.Errorf("%s: %v, want the last 10 s", path, d)
		}
		if len(snap.Xids) == 0 || snap.Xids[0].Code != 109 {
			t.Errorf("%s: Xids %v", path, snap.Xids)
		}
		if got, want := treeOf(t, snap), treeOf(t, b.Snapshot(sched.SnapshotOptions{})); got != want {
			t.Errorf("%s has\n%s\nwant\n%s", path, got, want)
		}
	}
}

// `record --last` on a simulated GPU, as a command: SIGQUIT writes, the end does not again.
func TestRecordLast(t *testing.T) {
	out := filepath.Join(t.TempDir(), "last.tsg.zst")
	var said bytes.Buffer
	o := &options{env: env{out: &bytes.Buffer{}, err: &said}, source: "sim:speed=20"}
	s, err := o.open(false, recording.PlayerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan struct{})
	var n int
	untap := s.board.Tap(func(es []sched.Event) {
		if n += len(es); n > 200 {
			select {
			case <-seen:
			default:
				close(seen)
			}
		}
	})
	defer untap()
	done := make(chan error, 1)
	go func() {
		done <- o.keepLast(ctx, s, ringOptions{RingOptions: recording.RingOptions{Span: time.Minute}, out: out, most: 8}, true)
	}()
	<-seen
	if err := syscall.Kill(os.Getpid(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	for {
		if st, err := os.Stat(out); err == nil && st.Size() > 0 {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("ended: %v: %s", err, said.String())
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(out + ".2"); err == nil {
		t.Error("the end wrote it again")
	}
	snap, _ := replayed(t, out)
	if len(snap.TSGs) == 0 {
		t.Error("no TSGs in the recording")
	}
}

func TestRecordFlags(t *testing.T) {
	for _, args := range [][]string{
		{"record"}, {"record", "-o", "x", "--on-xid"}, {"record", "-o", "x", "--last", "-1s"}, {"record", "-o", "x", "--max-files", "0"},
		{"record", "-o", "x", "--counters", "--for", "1s", "--source", "demo"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), env{strings.NewReader(""), &out, &errs}, append([]string{"--source", "sim"}, args...)); code != exitUsage {
			t.Errorf("%q: code %d: %s", args, code, errs.String())
		}
	}
}
