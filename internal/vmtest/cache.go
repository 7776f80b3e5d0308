package vmtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// CacheDir is the folder that keeps kernels and built modules between runs:
// TSGTOP_VM_CACHE, or tsgtop-vm in the user's cache folder.
func CacheDir() (string, error) {
	dir := os.Getenv("TSGTOP_VM_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a cache folder (set TSGTOP_VM_CACHE): %w", err)
		}
		dir = filepath.Join(base, "tsgtop-vm")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	return dir, nil
}

// RepoRoot is the folder of go.mod at or above the working directory.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod at or above %s: run inside the repository", dir)
		}
	}
}
