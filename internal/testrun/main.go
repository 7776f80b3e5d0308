// Command testrun runs the project's tests and closes with one line that
// counts them: `N passed, N failed, N skipped`. Tests that were left out are
// listed by name with the reason that they gave; so are the VM tests, where
// qemu is not there.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
}

type tally struct {
	passed, failed, skipped int
	reasons                 []string
}

func main() {
	tags := flag.String("tags", "", "build tags")
	vm := flag.String("vm", "auto", "run the VM tests: auto (where qemu is), yes, no")
	kernels := flag.String("k", "6.12", "kernels for the VM tests")
	race := flag.Bool("race", os.Getenv("CI") != "", "run with the race detector (needs cgo)")
	flag.Parse()

	var t tally
	args := []string{"test", "-json", "-tags", *tags}
	if *race && os.Getenv("CGO_ENABLED") != "0" {
		args = append(args, "-race")
	}
	ok := t.run(exec.Command("go", append(args, "./...")...))
	vmOK := t.vm(*vm, *kernels)

	if len(t.reasons) > 0 {
		fmt.Println("\nleft out:")
		sort.Strings(t.reasons)
		for _, r := range t.reasons {
			fmt.Println("  " + r)
		}
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	if !ok || !vmOK || t.failed > 0 {
		os.Exit(1)
	}
	if t.passed == 0 {
		fmt.Println("no test ran")
		os.Exit(1)
	}
}

// run executes `go test -json` and counts; it prints the output of what fails.
func (t *tally) run(cmd *exec.Cmd) bool {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Printf("cannot run %v: %v\n", cmd.Args, err)
		return false
	}
	output := map[string][]string{} // by package and test
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			fmt.Println(sc.Text()) // a build error, or a line of go itself
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if e.Action == "build-output" {
				fmt.Print(e.Output)
				continue
			}
			output[key] = append(output[key], e.Output)
		case "pass":
			if e.Test != "" {
				t.passed++
			} else {
				fmt.Println("ok  ", e.Package)
			}
			delete(output, key)
		case "skip":
			if e.Test != "" {
				t.skipped++
				t.reasons = append(t.reasons, fmt.Sprintf("%s: %s", key, reason(output[key])))
			}
			delete(output, key)
		case "fail":
			if e.Test != "" {
				t.failed++
			}
			fmt.Printf("FAIL %s\n%s", key, strings.Join(output[key], ""))
			delete(output, key)
		}
	}
	return cmd.Wait() == nil
}

// reason finds the sentence that t.Skip printed: the line before "--- SKIP".
func reason(lines []string) string {
	var kept []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "===") && !strings.HasPrefix(l, "---") {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, " ")
}

// vm runs the tests that need a kernel of their own.
func (t *tally) vm(mode, kernels string) bool {
	if mode == "no" {
		return true
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil && mode == "auto" {
		t.skipped++
		t.reasons = append(t.reasons, "VM tests: qemu-system-x86_64 is not installed (Debian: apt-get install qemu-system-x86 dwarves cpio zstd bc clang-14)")
		return true
	}
	cmd := exec.Command("go", "run", "./internal/vmtest/cmd/vmtest", "-k", kernels)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Printf("cannot run the VM tests: %v\n", err)
		return false
	}
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var p, f, s int
		if n, _ := fmt.Sscanf(sc.Text(), "%d passed, %d failed, %d skipped", &p, &f, &s); n >= 2 {
			t.passed, t.failed, t.skipped = t.passed+p, t.failed+f, t.skipped+s
		}
		fmt.Println("vm:", sc.Text())
	}
	return cmd.Wait() == nil
}
