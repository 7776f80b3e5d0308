package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// SystemFile is the machine's configuration.
const SystemFile = "/etc/tsgtop/config.toml"

// Loader says where to look.
type Loader struct {
	System   string // the machine's file; empty: none
	Operator Operator
	// File is used instead of the operator's own: with --config. It has to be
	// there, and counts as root's where nobody else can have written it.
	File  string
	Known Known
}

// UserFile is the operator's own file; empty where there is no home.
func (l Loader) UserFile() string {
	if d := l.Operator.Dir(); d != "" {
		return filepath.Join(d, "config.toml")
	}
	return ""
}

// Load reads the machine's file, then the operator's or the one that was
// asked for, which has the last word. A file that is not there says nothing,
// unless it was asked for.
func (l Loader) Load() (*Config, error) {
	c := &Config{}
	if l.System != "" {
		err := l.loadRoots(c, l.System)
		hidden := errors.Is(err, fs.ErrPermission) && l.Operator.UID != 0 // it speaks to root
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !hidden {
			return nil, fmt.Errorf("configuration: %w", err)
		}
	}
	var err error
	if l.File != "" {
		err = l.loadRoots(c, l.File)
	} else if user := l.UserFile(); user != "" {
		err = l.loadUsers(c, user, "; this is the operator's own file")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && l.closed(user) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return c, nil
}

// closed tells whether the operator may not even look whether a file is there:
// then it is not theirs, but in a home that HOME names and that is another's,
// as after setpriv or su without a login.
func (l Loader) closed(path string) bool {
	return errors.Is(l.Operator.Do(func() error {
		_, err := os.Lstat(path)
		return err
	}), fs.ErrPermission)
}

// loadRoots reads a file that may be root's; if it is not, as the operator.
func (l Loader) loadRoots(c *Config, path string) error {
	f, distrust, err := openRoots(path)
	switch {
	case distrust != "":
		return l.loadUsers(c, path, "; here "+distrust)
	case err != nil && l.Operator.UID == 0 && !l.Operator.Other, errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return l.loadUsers(c, path, "; whose this is could not be told")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) > maxBytes {
		return fmt.Errorf("%s: longer than %d bytes: not a configuration", path, maxBytes)
	}
	return c.Parse(b, path, true, "", l.Known)
}

// loadUsers reads a file with the operator's rights.
func (l Loader) loadUsers(c *Config, path, distrust string) error {
	var b []byte
	err := l.Operator.Do(func() (err error) {
		b, err = readRegular(path, l.Operator.UID, 0)
		return err
	})
	if err != nil {
		return err
	}
	return c.Parse(b, path, false, distrust, l.Known)
}

// ThemesDir is the operator's folder of themes; empty where there is no home.
func (l Loader) ThemesDir() string {
	if d := l.Operator.Dir(); d != "" {
		return filepath.Join(d, "themes")
	}
	return ""
}

// Themes calls add with the folder of the operator's themes, and with the
// operator's rights; not at all where there is no such folder. add must be
// done with it when it returns.
func (l Loader) Themes(add func(fs.FS) error) error {
	dir := l.ThemesDir()
	if dir == "" {
		return nil
	}
	return l.Operator.Do(func() error {
		d := folder{dir, []int{l.Operator.UID, 0}}
		if _, err := d.ReadDir("."); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return fmt.Errorf("themes: %w", err)
		}
		return add(d)
	})
}
