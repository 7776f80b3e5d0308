//go:build linux

// Package rootfile opens the files that a command run as root writes: without
// following links, in a folder that nobody else can write to, and with checks
// that what was opened is what was meant.
package rootfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Dir is an open folder that was found to be safe to write in.
type Dir struct {
	path string
	fd   int
}

// OpenDir opens a folder, and makes it with mode where it does not exist (its
// parent must). It must be a folder and no link, belong to root or to us, and
// be writable by nobody else. The mode of one that exists is left as it is.
func OpenDir(path string, mode os.FileMode) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make folder %s: %w", path, err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open folder %s (links are not followed): %w", path, err)
	}
	d := &Dir{path: path, fd: fd}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		d.Close()
		return nil, fmt.Errorf("look at folder %s: %w", path, err)
	}
	switch {
	case st.Uid != 0 && st.Uid != uint32(unix.Geteuid()):
		err = fmt.Errorf("folder %s belongs to uid %d: what is written there must not be under another user's hand; use a folder of root's", path, st.Uid)
	case st.Mode&0o022 != 0:
		err = fmt.Errorf("folder %s can be written by others (mode %04o): take that away (chmod go-w)", path, st.Mode&0o7777)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Path is the folder's.
func (d *Dir) Path() string { return d.path }

// Close lets go of the folder.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Open opens or makes a file of the folder, readable by its owner alone. flags
// are those of open(2), such as O_RDWR|O_APPEND|O_CREAT. The file must be a
// plain one with one name, belong to root or to us, and be writable by nobody
// else; no link is followed.
func (d *Dir) Open(name string, flags int) (*os.File, error) {
	path := filepath.Join(d.path, name)
	fd, err := unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s (links are not followed): %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("look at %s: %w", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = fmt.Errorf("%s is no plain file", path)
	case st.Nlink > 1:
		err = fmt.Errorf("%s has %d names: it may be somebody else's file", path, st.Nlink)
	case st.Uid != 0 && st.Uid != uint32(unix.Geteuid()):
		err = fmt.Errorf("%s belongs to uid %d", path, st.Uid)
	case st.Mode&0o022 != 0:
		err = fmt.Errorf("%s can be written by others (mode %04o): take that away (chmod go-w)", path, st.Mode&0o7777)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Rename gives a file of the folder another name, and waits until that is on
// the disk.
func (d *Dir) Rename(from, to string) error {
	if err := unix.Renameat(d.fd, from, d.fd, to); err != nil {
		return fmt.Errorf("rename %s to %s in %s: %w", from, to, d.path, err)
	}
	return d.Sync()
}

// Remove removes a file of the folder; that there is none is no error.
func (d *Dir) Remove(name string) error {
	if err := unix.Unlinkat(d.fd, name, 0); err != nil && err != unix.ENOENT {
		return fmt.Errorf("remove %s in %s: %w", name, d.path, err)
	}
	return nil
}

// Sync waits until the folder's names are on the disk.
func (d *Dir) Sync() error {
	if err := unix.Fsync(d.fd); err != nil && err != unix.EINVAL {
		return fmt.Errorf("sync folder %s: %w", d.path, err)
	}
	return nil
}

// AppendLine writes one line at the end of a file that was opened with
// O_APPEND, and waits until it is on the disk. It is written whole or not at
// all: what a full disk cut short is taken away again, and where that cannot be
// done, the next line begins on a line of its own. The caller holds a lock on
// the file against other writers.
func AppendLine(f *os.File, line []byte) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("look for the end of %s: %w", f.Name(), err)
	}
	out := make([]byte, 0, len(line)+2)
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			out = append(out, '\n')
		}
	}
	out = append(append(out, line...), '\n')
	n, err := f.Write(out)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		if n > 0 {
			_ = f.Truncate(size)
		}
		return fmt.Errorf("write %d bytes to %s: %w", len(out), f.Name(), err)
	}
	return nil
}
