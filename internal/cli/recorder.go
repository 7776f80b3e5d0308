package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

// recorder records what the screen looks at, from a key press to the next. It
// implements ui.Recorder.
type recorder struct {
	board *sched.Board
	dir   string // where recordings go; empty: the working directory
	opts  recording.WriterOptions
	now   func() time.Time

	mu    sync.Mutex
	w     *recording.Writer // nil: not recording
	path  string
	untap func()
}

func newRecorder(b *sched.Board, dir string, opts recording.WriterOptions) *recorder {
	return &recorder{board: b, dir: dir, opts: opts, now: time.Now}
}

// Start begins a recording in a new file and gives its path. The recording
// begins with what is there already, so that a replay shows it.
func (r *recorder) Start() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w != nil {
		return r.path, errors.New("it is recording already, to " + r.path)
	}
	opts := r.opts
	opts.From = r.board.Snapshot(sched.SnapshotOptions{}).Time
	w, path, err := createNumbered(filepath.Join(r.dir, "tsgtop-"+r.now().Format("20060102-150405")), opts)
	if err != nil {
		return "", err
	}
	r.w, r.path = w, path
	var failed sync.Once
	r.untap = r.board.Join(func(events []sched.Event) {
		if err := w.Write(events); err != nil {
			failed.Do(func() { go r.say(path, err) }) // a tap must not feed the board
		}
	})
	return path, nil
}

// createNumbered makes BASE.tsg.zst, or BASE-2.tsg.zst where that exists.
func createNumbered(base string, opts recording.WriterOptions) (*recording.Writer, string, error) {
	const most = 100
	for i := 1; ; i++ {
		path := base + ".tsg.zst"
		if i > 1 {
			path = fmt.Sprintf("%s-%d.tsg.zst", base, i)
		}
		if _, err := os.Lstat(path); err == nil && i < most {
			continue
		}
		w, err := recording.Create(path, opts)
		return w, path, err
	}
}

// say puts what went wrong with a recording on the screen.
func (r *recorder) say(path string, err error) {
	r.board.Feed([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "recording", GPU: sched.Unknown, State: sched.ProbeMissing,
		Why: fmt.Sprintf("the recording %s ended early: %v", path, err), Help: "what was written before can be replayed"}})
}

// Stop ends the recording and gives its path. An error says what is missing
// from it; what was written before is good.
func (r *recorder) Stop() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil {
		return "", errors.New("nothing is being recorded")
	}
	r.untap()
	err := r.w.Close()
	r.w = nil
	return r.path, err
}

// end stops what is still being recorded when the screen ends, and says so.
func (r *recorder) end(say func(string)) {
	r.mu.Lock()
	on := r.w != nil
	r.mu.Unlock()
	if !on {
		return
	}
	path, err := r.Stop()
	if err != nil {
		say(fmt.Sprintf("the recording %s is not whole: %v", path, err))
		return
	}
	say("recorded " + path)
}
