package recording

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tsgtop/internal/sched"
)

func TestCreateReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	link, dangling := filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	if err := errors.Join(os.Symlink(victim, link), os.Symlink(filepath.Join(dir, "new"), dangling)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{victim, link, dangling, filepath.Join(dir, "no", "folder")} {
		if w, err := Create(path, WriterOptions{}); err == nil {
			w.Close()
			t.Errorf("%s was written to", path)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name %s: %v", path, err)
		}
	}
	if b, _ := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("the file now holds %q", b)
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was made behind a dangling link")
	}
}

func TestCreateMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w, err := Create(path, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	// the header is there before anything else happens
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// fullDisk takes the header and then no more.
type fullDisk struct{ writes int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.writes++; d.writes > 1 {
		return 0, errFull
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	if _, err := NewWriter(&fullDisk{writes: 1}, Header{}, WriterOptions{}); !errors.Is(err, errFull) {
		t.Errorf("full from the start: %v", err)
	}
	w, err := NewWriter(&fullDisk{}, Header{}, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(someSeconds(3)); err != nil && !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	<-w.done // the first frame's failure ends the flushing
	for range 2 {
		if err := w.Write(someSeconds(1)); !errors.Is(err, errFull) {
			t.Errorf("Write gave %v", err)
		}
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close gave %v", err)
	}
}

// slowDisk takes the header at once, and everything else when it is let.
type slowDisk struct {
	bytes.Buffer
	let    chan struct{}
	writes int
}

func (d *slowDisk) Write(p []byte) (int, error) {
	if d.writes++; d.writes > 1 {
		<-d.let
	}
	return d.Buffer.Write(p)
}

func TestSlowDiskIsCounted(t *testing.T) {
	d := &slowDisk{let: make(chan struct{})}
	w, err := NewWriter(d, Header{}, WriterOptions{Args: true})
	if err != nil {
		t.Fatal(err)
	}
	filler := make([]sched.Event, 0, 64)
	for range cap(filler) {
		var p sched.Process
		for range 250 {
			p.Args = append(p.Args, strings.Repeat("x", maxString))
		}
		filler = append(filler, p)
	}
	if err := w.Write(filler); err != nil { // 64 MiB of text
		t.Fatal(err)
	}
	w.mu.Lock()
	queued, dropped := w.queued, w.dropped
	w.mu.Unlock()
	if queued > maxQueued+2*frameBytes || dropped == 0 {
		t.Errorf("%d bytes wait, %d events were dropped", queued, dropped)
	}
	close(d.let)
	for w.queuedNow() > 0 {
		time.Sleep(time.Millisecond)
	}
	if err := errors.Join(w.Write([]sched.Event{sched.Loss{Time: 1}}), w.Close()); err != nil {
		t.Fatal(err)
	}
	got := mustRead(t, d.Bytes())
	note, ok := got[len(got)-2].(sched.ProbeStatus)
	if !ok || !strings.Contains(note.Why, fmt.Sprintf("%d events are missing", dropped)) || len(got)-2+dropped != len(filler) {
		t.Errorf("%d events, %d dropped, and before the last: %.200v", len(got), dropped, got[len(got)-2])
	}
}

func (w *Writer) queuedNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queued
}

func TestAFrameASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		w, err := NewWriter(&b, Header{}, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write([]sched.Event{sched.ProcessExit{Time: 1, PID: 1}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(frameSpan + time.Millisecond)
		synctest.Wait()
		if n := len(mustRead(t, b.Bytes())); n != 1 {
			t.Errorf("after a second %d events are in the file", n)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
	// and by the events' own time, however fast they come
	data := record(t, WriterOptions{}, someSeconds(30)...)
	if n := len(lastFrames(bytes.NewReader(data), int64(len(data)))); n < 30 || n > 33 {
		t.Errorf("30 seconds of events made %d frames", n)
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w, err := Create(path, WriterOptions{MaxBytes: 4000, MaxFiles: 3, Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	tsg := sched.Call{Kind: sched.CallAlloc, End: 5, PID: 7, Client: 1, Object: 2, Parent: 9, Params: &sched.Params{Engine: sched.Ptr(uint32(1))}}
	begin := []sched.Event{sched.SourceInfo{Time: 1, Label: "LIVE"}, sched.GPU{Time: 1, Name: "H200"}, sched.Process{Time: 1, PID: 7, Comm: "train.py"}, tsg}
	if err := w.Write(begin); err != nil {
		t.Fatal(err)
	}
	for i := 0; w.parts() < 5; i++ {
		if err := w.Write([]sched.Event{sched.Xid{Time: sched.Time(1e9 + i*1e9), Text: strings.Repeat(fmt.Sprint(i*i), 30)}}); err != nil {
			t.Fatal(err)
		}
		for w.queuedNow() > 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(path + "*")
	if len(names) != 3 {
		t.Fatalf("files: %v", names)
	}
	var lastXid sched.Time
	for _, name := range []string{path + ".2", path + ".1", path} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		from := r.Header().From
		var gpu, process, call bool
		for _, e := range mustRead(t, data) {
			switch v := e.(type) {
			case sched.GPU:
				gpu = v.Name == "H200"
			case sched.Process:
				process = v.PID == 7
			case sched.CallBatch:
				call = len(v.Calls) == 1 && v.Calls[0].Object == 2
			case sched.Xid:
				if v.Time < from {
					continue // of the parts before
				}
				if lastXid != 0 && v.Time != lastXid+1e9 {
					t.Errorf("%s: from the Xid at %d to the one at %d", name, lastXid, v.Time)
				}
				lastXid = v.Time
			}
		}
		if !gpu || !process || !call {
			t.Errorf("%s does not stand alone: GPU %v, process %v, TSG %v", name, gpu, process, call)
		}
	}
	if _, err := Create(path+"x", WriterOptions{MaxBytes: 1}); err != nil {
		t.Error(err)
	}
	if _, err := NewWriter(&bytes.Buffer{}, Header{}, WriterOptions{MaxBytes: 1}); err == nil {
		t.Error("a stream was to rotate")
	}
}

func (w *Writer) parts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.part
}

func TestRotationReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path+".1", []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, WriterOptions{MaxBytes: 100}); err == nil || !strings.Contains(err.Error(), path+".1") {
		t.Errorf("Create gave %v", err)
	}
	out := &file{path: path, keep: 3}
	if err := out.create(); err != nil {
		t.Fatal(err)
	}
	if err := out.next(); err == nil {
		t.Error("a part was renamed over another file")
	}
	if b, _ := os.ReadFile(path + ".1"); string(b) != "precious" {
		t.Errorf("the file now holds %q", b)
	}
}

func TestScrub(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Host: "dgx-07.lab.example", Notes: []string{"on dgx-07"}}, WriterOptions{Scrub: true, ScrubNames: []string{"eve", "root"}, Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	events := []sched.Event{
		sched.SourceInfo{Host: "dgx-07.lab.example", BootID: "1234", Notes: []string{"dgx-07: started by eve, not ada"}},
		sched.Process{PID: 1, UID: sched.Ptr(1017), User: "ada", Exe: "/home/bob/bin/ada-train", Comm: "train", Args: []string{"--key=s3cret"},
			Cgroup: "/user.slice/user-1017.slice/session-3.scope", Unit: "slurm:job_5/uid_1017"},
		sched.Process{PID: 2, UID: sched.Ptr(0), User: "root", Exe: "/usr/bin/adapter"},
		sched.Command{Target: sched.Target{User: "ada", Exe: "/data/ada/x"}, Undo: "ask ada."},
		sched.Xid{Text: "pid=9, name=ada, on dgx-07", Name: "ada"},
		sched.CallBatch{Calls: []sched.Call{{Comm: "ada"}}},
	}
	if err := errors.Join(w.Write(events), w.Close()); err != nil {
		t.Fatal(err)
	}
	got := mustRead(t, b.Bytes())
	mustEqual(t, got, []sched.Event{
		sched.SourceInfo{Host: "host1", Notes: []string{"host1: started by user1, not ada"}}, // ada was not known yet
		sched.Process{PID: 1, User: "user2", Exe: "/home/user3/bin/user2-train", Comm: "train",
			Cgroup: "/user.slice/user-N.slice/session-3.scope", Unit: "slurm:job_5/uid_N"},
		sched.Process{PID: 2, UID: sched.Ptr(0), User: "root", Exe: "/usr/bin/adapter"},
		sched.Command{Target: sched.Target{User: "user2", Exe: "/data/user2/x"}, Undo: "ask user2."},
		sched.Xid{Text: "pid=9, name=user2, on host1", Name: "user2"},
		sched.CallBatch{Calls: []sched.Call{{Comm: "user2"}}},
	})
	r, err := NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); !h.Scrubbed || h.Host != "host1" || h.Notes[0] != "on host1" {
		t.Errorf("header %+v", h)
	}
}

func TestArgsOnlyWhenAskedFor(t *testing.T) {
	p := sched.Process{PID: 1, Exe: "/bin/x", Args: []string{"--key=s3cret"}}
	got := mustRead(t, record(t, WriterOptions{}, p))[0].(sched.Process)
	if got.Args != nil || got.Exe != p.Exe {
		t.Errorf("got %+v", got)
	}
	if got := mustRead(t, record(t, WriterOptions{Args: true}, p))[0].(sched.Process); len(got.Args) != 1 {
		t.Errorf("arguments that were asked for are gone: %+v", got)
	}
}
