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
	failures                map[string]int // failed tests, subtests too, by package; 0: it failed outside of any
	again                   []string       // what failed first and passed at the second try
}

func main() {
	tags := flag.String("tags", "", "build tags")
	vm := flag.String("vm", "auto", "run the VM tests: auto (where qemu is), yes, no")
	kernels := flag.String("k", "6.12", "kernels for the VM tests")
	race := flag.Bool("race", os.Getenv("CI") != "", "run with the race detector (needs cgo)")
	flag.Parse()

	t := tally{failures: map[string]int{}}
	args := []string{"test", "-json", "-tags", *tags}
	if *race && os.Getenv("CGO_ENABLED") != "0" {
		args = append(args, "-race")
	}
	ok := t.run(exec.Command("go", append(args, "./...")...))
	if !ok {
		ok = t.tryAgain(args)
	}
	vmOK := t.vm(*vm, *kernels)

	if len(t.reasons) > 0 {
		fmt.Println("\nleft out:")
		sort.Strings(t.reasons)
		for _, r := range t.reasons {
			fmt.Println("  " + r)
		}
	}
	if len(t.again) > 0 {
		fmt.Println("\npassed only at the second try, alone:")
		for _, a := range t.again {
			fmt.Println("  " + a)
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
				t.failures[e.Package]++
			} else {
				t.failures[e.Package] += 0 // noted, also where no test of it failed
			}
			fmt.Printf("FAIL %s\n%s", key, strings.Join(output[key], ""))
			delete(output, key)
		}
	}
	return cmd.Wait() == nil
}

// maxAgain is how many packages are tried again at most: more that fail are no
// matter of a loaded machine.
const maxAgain = 4

// tryAgain runs each package in which a test failed once more, alone and whole:
// some tests wait for other processes, and a loaded machine lets them wait too
// long. Packages that pass then are named at the end. It tells whether all did;
// what does not build has no second try.
func (t *tally) tryAgain(args []string) bool {
	if len(t.failures) == 0 || len(t.failures) > maxAgain {
		return false
	}
	all := true
	for pkg, n := range t.failures {
		if n == 0 {
			all = false // it did not build, or ended before any test
			continue
		}
		fmt.Printf("second try, alone: %s\n", pkg)
		second := tally{failures: map[string]int{}}
		if !second.run(exec.Command("go", append(args[:len(args):len(args)], "-count=1", pkg)...)) || second.passed == 0 {
			all = false
			continue
		}
		t.failed -= n
		t.passed += n
		t.again = append(t.again, fmt.Sprintf("%s: %d tests", pkg, n))
	}
	sort.Strings(t.again)
	return all
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
		if strings.Contains(sc.Text(), ": SECOND TRY ") {
			t.again = append(t.again, "VM "+sc.Text())
		}
		fmt.Println("vm:", sc.Text())
	}
	return cmd.Wait() == nil
}
