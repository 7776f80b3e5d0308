// Package glibc tells what a program needs of the C library.
package glibc

import (
	"cmp"
	"debug/elf"
	"fmt"
	"strconv"
	"strings"
)

// Floor is the newest version of glibc whose symbols the program imports, such
// as "2.34"; empty for a program that imports none.
func Floor(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	if f.Section(".dynamic") == nil {
		return "", nil
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return "", fmt.Errorf("read the symbols of %s: %w", path, err)
	}
	newest := ""
	for _, s := range symbols {
		if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && Compare(v, newest) > 0 {
			newest = v
		}
	}
	return newest, nil
}

// Compare compares two versions of numbers and dots; an empty one is the oldest.
func Compare(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if c := cmp.Compare(part(x, i), part(y, i)); c != 0 {
			return c
		}
	}
	return 0
}

func part(l []string, i int) int {
	if i >= len(l) {
		return -1
	}
	n, err := strconv.Atoi(l[i])
	if err != nil {
		return -1
	}
	return n
}
