package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const maxBytes = 64 << 10

// readRegular reads a whole small file: no link, no pipe and no device in its
// last place, and nothing that blocks.
func readRegular(path string, owners ...int) ([]byte, error) {
	f, err := openRegular(path, owners...)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(b) > maxBytes:
		return nil, fmt.Errorf("%s: longer than %d bytes: not a configuration", path, maxBytes)
	}
	return b, nil
}

// openRegular opens a regular file that belongs to one of owners.
func openRegular(path string, owners ...int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s: a symbolic link is not followed; put the file itself there", path)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	for _, uid := range owners {
		if int(st.Uid) == uid {
			return f, nil
		}
	}
	f.Close()
	return nil, fmt.Errorf("%s: belongs to user %d, who is neither the operator nor root", path, st.Uid)
}

// openRoots opens a file that nobody but root can have written: it and every
// folder on the way to it belong to root and are writable by nobody else, and
// no link is on the way. distrust says in words why not; the file may then
// still be opened some other way.
func openRoots(path string) (f *os.File, distrust string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	defer func() { unix.Close(at) }()
	if why := notRoots(at); why != "" {
		return nil, "/ " + why, nil
	}
	parts := strings.Split(strings.TrimPrefix(filepath.Clean(abs), "/"), "/")
	for i, part := range parts {
		so := "/" + filepath.Join(parts[:i+1]...)
		flags := unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
		next, err := unix.Openat(at, part, flags, 0)
		if err != nil {
			return nil, "", &fs.PathError{Op: "open", Path: path, Err: err}
		}
		unix.Close(at)
		at = next
		if why := notRoots(at); why != "" {
			return nil, so + " " + why, nil
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, "", &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, "", fmt.Errorf("%s: not a regular file", path)
	}
	// The very file that was looked at, not what has its name by now.
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), "", nil
}

// notRoots says why somebody other than root could have written what fd stands
// for; empty: nobody could.
func notRoots(fd int) string {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "cannot be looked at: " + err.Error()
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return "is a symbolic link"
	case st.Uid != 0:
		return fmt.Sprintf("belongs to user %d", st.Uid)
	case st.Mode&0o022 != 0:
		return "can be written by others than its owner"
	default:
		return ""
	}
}

// folder is a folder whose regular files can be opened, and nothing else in it.
type folder struct {
	path   string
	owners []int
}

func (d folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return os.Open(d.path)
	}
	return openRegular(filepath.Join(d.path, name), d.owners...)
}

func (d folder) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.ReadDir(d.path)
}
