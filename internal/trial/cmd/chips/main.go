// Command chips makes docs/chips.md from the share files in docs/chips.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"tsgtop/internal/trial"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: chips FOLDER PAGE")
		os.Exit(1)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chips:", err)
		os.Exit(1)
	}
}

func run(folder, page string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	var shares []*trial.Share
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := trial.ReadShare(bytes.NewReader(b))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		shares = append(shares, s)
	}
	var out bytes.Buffer
	if err := trial.Chips(&out, shares); err != nil {
		return err
	}
	return os.WriteFile(page, out.Bytes(), 0o644)
}
