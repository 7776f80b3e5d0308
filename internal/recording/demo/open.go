// Package demo holds the recording that is built into the program.
package demo

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"

	"tsgtop/internal/recording"
)

// The pattern takes in demo.md, too, so that the program can be built before
// there is a recording.
//
//go:embed demo.*
var files embed.FS

const name = "demo.tsg.zst"

// ErrNone: this program was built without a recording inside.
var ErrNone = errors.New("no recording is built into this tsgtop: internal/recording/demo/" + name + " was missing or empty when it was built; play a file with `tsgtop replay FILE`")

// Open gives a player of the built-in recording. An empty label becomes DEMO.
func Open(opts recording.PlayerOptions) (*recording.Player, error) {
	return open(files, opts)
}

func open(from fs.FS, opts recording.PlayerOptions) (*recording.Player, error) {
	data, err := read(from)
	if err != nil {
		return nil, err
	}
	if opts.Label == "" {
		opts.Label = "DEMO"
	}
	return recording.NewPlayer(bytes.NewReader(data), int64(len(data)), "the built-in recording", opts)
}

// Reader gives the built-in recording from its beginning.
func Reader() (*recording.Reader, error) {
	data, err := read(files)
	if err != nil {
		return nil, err
	}
	return recording.NewReader(named{bytes.NewReader(data)})
}

func read(from fs.FS) ([]byte, error) {
	data, err := fs.ReadFile(from, name)
	if err != nil || len(data) == 0 {
		return nil, ErrNone
	}
	return data, nil
}

type named struct{ *bytes.Reader }

func (named) Name() string { return "the built-in recording" }
