package cli

import (
	"fmt"
	"os"

	"tsgtop/internal/privdrop"
)

// dropRoot gives up root; Main sets it. Nil in tests, whose process goes on.
var dropRoot func(privdrop.Options) error

// giveUpRoot is dropRoot for the program itself.
func giveUpRoot(o privdrop.Options) error {
	return privdrop.Drop(privdrop.Target(os.Getenv), o)
}

// seal gives up root where the source is a recording: reading one needs no
// rights, and it can come from anybody. Files that need root, the recording
// itself above all, have been opened before.
func (s *opened) seal(o privdrop.Options) error {
	if s.player == nil || dropRoot == nil {
		return nil
	}
	if err := dropRoot(o); err != nil {
		return fail(exitInternal, "a recording is not read as root, and root could not be given up: %w", fmt.Errorf("%w (run tsgtop as an ordinary user)", err))
	}
	return nil
}
