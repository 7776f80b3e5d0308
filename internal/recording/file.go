package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Create begins a recording in a new file, which only its owner can read. It
// never writes to what exists already, also not through a symbolic link: a
// program that runs as root must not be led to somebody else's file.
func Create(path string, opts WriterOptions) (*Writer, error) {
	h := Header{Tool: opts.ToolVersion, From: opts.From}
	out := &file{path: path, keep: opts.MaxFiles}
	if out.keep <= 0 {
		out.keep = 8
	}
	if opts.MaxBytes > 0 {
		for i := 1; i < out.keep; i++ {
			if _, err := os.Lstat(out.old(i)); !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("recording to %s: %s, the name of a later part, exists already; give another name", path, out.old(i))
			}
		}
	}
	if err := out.create(); err != nil {
		return nil, err
	}
	w, err := newWriter(out, h, opts)
	if err != nil {
		out.f.Close()
		os.Remove(path) // made a moment ago, and holds nothing
		return nil, err
	}
	return w, nil
}

// file is an output to a file and its rotated predecessors.
type file struct {
	path string
	f    *os.File
	n    int64
	keep int // files, the current one included
	olds int // predecessors that exist, all made by this run
}

func (o *file) old(i int) string { return o.path + "." + strconv.Itoa(i) }

func (o *file) create() error {
	f, err := createNew(o.path)
	if err != nil {
		return fmt.Errorf("recording to %s: %w", o.path, cause(err))
	}
	o.f, o.n = f, 0
	return nil
}

// OpenFile opens what is to be read as a recording: a regular file, which can
// be read from any place and more than once. Anything else is refused at once;
// opening a pipe would otherwise wait for who writes it.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the recording %s: %w", path, cause(err))
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("it is %s, and a recording is read from a regular file", kindOfFile(st.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("opening the recording %s: %w", path, cause(err))
	}
	return f, nil
}

// cause is an error of package os without the path, for errors that name it.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// kindOfFile says what a file that is not regular is.
func kindOfFile(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}

// createNew makes a file that did not exist, readable by its owner only.
func createNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errors.New("the file exists already, and a recording never replaces one; give another name")
	}
	return f, err
}

func (o *file) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	o.n += int64(n)
	return n, err
}

func (o *file) written() int64 { return o.n }

// Close makes sure that the recording is on the disk.
func (o *file) Close() error { return errors.Join(o.f.Sync(), o.f.Close()) }

func (o *file) next() error {
	if err := o.Close(); err != nil {
		return fmt.Errorf("closing a part of the recording %s: %w", o.path, err)
	}
	if o.olds == o.keep-1 && o.olds > 0 {
		if err := os.Remove(o.old(o.olds)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the oldest part of the recording: %w", err)
		}
		o.olds--
	}
	if o.keep == 1 {
		if err := os.Remove(o.path); err != nil {
			return fmt.Errorf("removing the oldest part of the recording: %w", err)
		}
		return o.create()
	}
	for i := o.olds; i >= 0; i-- {
		from := o.path
		if i > 0 {
			from = o.old(i)
		}
		if err := renameNew(from, o.old(i+1)); err != nil {
			if i > 0 && errors.Is(err, fs.ErrNotExist) {
				continue // somebody took a part away: let them
			}
			return fmt.Errorf("renaming a part of the recording, %s to %s: %w", from, o.old(i+1), err)
		}
	}
	o.olds++
	return o.create()
}

// renameNew renames a file, but not over what somebody else has put there.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system cannot do that in one step.
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}
