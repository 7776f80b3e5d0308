// Package export turns a recording into the formats that other tools read:
// Perfetto's trace, an asciicast, CSV of turns, JSON lines. Everything is
// written as it is read; memory is bounded whatever the recording holds.
package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
)

// Source gives the events of a recording, in order, as fast as sink takes them.
// It stops early, without an error, when ctx ends.
type Source func(ctx context.Context, sink func([]sched.Event)) error

// Create makes a new file that only its owner can read. It never writes to what
// exists already, also not through a symbolic link. owner, where it is not nil,
// gets the file: who ran sudo wants to read what comes out.
func Create(path string, owner *Owner) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("export to %s: the file exists already, and an export never replaces one; give another name", path)
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if owner != nil {
		if err := f.Chown(owner.UID, owner.GID); err != nil {
			f.Close()
			os.Remove(path) // made a moment ago
			return nil, fmt.Errorf("export to %s: give the file to user %d: %w", path, owner.UID, err)
		}
	}
	return f, nil
}

// Owner is a user and group.
type Owner struct{ UID, GID int }
