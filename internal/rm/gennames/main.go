// Command gennames writes the name tables of package rm (names_control.go,
// names_class.go, names_status.go) from a git clone of NVIDIA's
// open-gpu-kernel-modules:
//
//	go run ./internal/rm/gennames -git PATH/TO/CLONE -out internal/rm
//
// It reads the interface headers of every release tag from the given major
// version on, and takes nothing from them but names and numbers. Where releases
// gave one number to different commands, the entry has all their names, newest
// first, with a bar between: the number alone cannot tell them apart.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	git := flag.String("git", "", "git directory of a clone of open-gpu-kernel-modules, with tags")
	out := flag.String("out", "internal/rm", "folder of package rm")
	from := flag.Int("from", 550, "first major version to read")
	flag.Parse()
	if *git == "" {
		log.Fatal("gennames: -git is missing: the path of a clone of github.com/NVIDIA/open-gpu-kernel-modules")
	}
	tags, err := releases(*git, *from)
	if err != nil {
		log.Fatalf("gennames: %v", err)
	}
	names := tables{}
	seen := map[string][]entry{} // by blob and path: most headers do not change from tag to tag
	for _, tag := range tags {
		if err := names.read(*git, tag, seen); err != nil {
			log.Fatalf("gennames: %s: %v", tag, err)
		}
	}
	span := fmt.Sprintf("drivers %s to %s", tags[0], tags[len(tags)-1])
	for _, t := range []struct {
		kind          kind
		file, v, what string
		width         int
	}{
		{control, "names_control.go", "controlNames", "control commands", 8},
		{class, "names_class.go", "classNames", "object classes", 4},
		{status, "names_status.go", "statusNames", "status codes", 0},
	} {
		path := filepath.Join(*out, t.file)
		if err := os.WriteFile(path, names.source(t.kind, t.v, t.what, span, t.width), 0o644); err != nil {
			log.Fatalf("gennames: %v", err)
		}
		log.Printf("%s: %d numbers from %d releases", path, len(names[t.kind]), len(tags))
	}
}

// releases are the tags from the major version on, oldest first.
func releases(git string, from int) ([]string, error) {
	list, err := run(git, "tag")
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, t := range strings.Fields(list) {
		major, _, _ := strings.Cut(t, ".")
		if n, err := strconv.Atoi(major); err == nil && n >= from {
			tags = append(tags, t)
		}
	}
	if len(tags) == 0 {
		return nil, fmt.Errorf("%s: no release tag from %d on: fetch the tags", git, from)
	}
	sort.Slice(tags, func(i, j int) bool { return older(tags[i], tags[j]) })
	return tags, nil
}

func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(as) && i < len(bs); i++ {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return len(as) < len(bs)
}

func run(git string, args ...string) (string, error) {
	b, err := exec.Command("git", append([]string{"-C", git}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git -C %s %s: %w", git, strings.Join(args, " "), err)
	}
	return string(b), nil
}
