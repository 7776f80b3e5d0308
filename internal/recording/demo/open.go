// Package demo holds the recording that is built into the program.
package demo

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
)

// The pattern takes in demo.md, too, so that the program can be built before
// there is a recording.
//
//go:embed demo.*
var files embed.FS

const name = "demo.tsg.zst"

// ErrNone: this program was built without a recording inside.
var ErrNone = errors.New("no recording is built into this tsgtop: internal/recording/demo/" + name + " was missing or empty when it was built; play a file with `tsgtop replay FILE`")

// Open gives the built-in recording, for recording.NewPlayer or
// recording.NewReader.
func Open() (*bytes.Reader, error) {
	data, err := read(files)
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(data), nil
}

func read(from fs.FS) ([]byte, error) {
	data, err := fs.ReadFile(from, name)
	if err != nil || len(data) == 0 {
		return nil, ErrNone
	}
	return data, nil
}
