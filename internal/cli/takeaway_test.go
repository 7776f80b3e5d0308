package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestVersion(t *testing.T) {
	code, out, _ := runTool("version", "--json")
	var b buildInfo
	if err := json.Unmarshal([]byte(out), &b); code != 0 || err != nil {
		t.Fatalf("%d %v", code, err)
	}
	if !slices.Contains(b.Drivers, 580) || len(b.Objects) != 3 || b.Recording < 1 || !strings.HasPrefix(b.Clang, "clang-") {
		t.Errorf("%+v", b)
	}
	_, text, _ := runTool("version")
	for _, want := range []string{"580", b.Objects[0].SHA256[:12], b.Clang, b.Go} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := runTool("man", "--dir", dir); code != 0 {
		t.Fatal(errs)
	}
	for _, name := range []string{"tsgtop.8", "tsgtop-export.8", "tsgtop-serve.8", "tsgtop-record.8", "tsgtop-timeslice.8"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Contains(b, []byte(".SH NAME")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, one, _ := runTool("man", "export")
	b, _ := os.ReadFile(filepath.Join(dir, "tsgtop-export.8"))
	if one != string(b) {
		t.Error("the page that is printed is not the one that is written")
	}
	if code, _, _ := runTool("man", "nothing"); code != exitUsage {
		t.Errorf("a page of nothing: %d", code)
	}
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("skip: needs man (Debian package man-db)")
	}
	cmd := exec.Command(man, "--warnings", "-l", filepath.Join(dir, "tsgtop-export.8"))
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANPAGER=cat", "MANWIDTH=100")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 || !strings.Contains(out.String(), "--to") {
		t.Errorf("man: %v: %s", err, errs.String())
	}
}

// Each shell takes its completion script, where the shell is here.
func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			code, script, errs := runTool("completion", shell)
			if code != 0 || !strings.Contains(script, "tsgtop") {
				t.Fatalf("%d %s", code, errs)
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("skip: needs %s (Debian package %s)", shell, shell)
			}
			cmd := exec.Command(path, "-n", "/dev/stdin")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for want, args := range map[string][]string{
		"perfetto\ncast\ncsv\njson\n": {"export", "demo", "--to", ""},
		"export\t":                    {"expo"},
	} {
		if code, out, _ := runTool(append([]string{"__complete"}, args...)...); code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%q completes to %q", args, out)
		}
	}
}

// lines is standard error while the program runs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// `tsgtop serve` on a recording shows its switch tax, and stops when told to.
func TestServeCommand(t *testing.T) {
	rec := simRecording(t, 15*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var errs lines
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, env{strings.NewReader(""), io.Discard, &errs}, []string{"serve", "--source", rec, "--speed", "100", "--loop", "--listen", "127.0.0.1:0"})
	}()
	where := regexp.MustCompile(`http://\S+/metrics`)
	var url string
	for url == "" {
		select {
		case code := <-done:
			t.Fatalf("it ended with %d: %s", code, errs.String())
		case <-time.After(5 * time.Millisecond):
			url = where.FindString(errs.String())
		}
	}
	tax := regexp.MustCompile(`(?m)^tsgtop_gpu_switch_tax_ratio\{gpu="0"\} 0\.0`)
	for deadline := time.Now().Add(20 * time.Second); ; {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if tax.Match(b) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no switch tax:\n%s", b)
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("it stopped with %d: %s", code, errs.String())
	}
}

func TestServeRefuses(t *testing.T) {
	rec := simRecording(t, time.Second)
	for _, args := range [][]string{
		{"--max-series", "0"}, {"--speed", "0"}, {"--listen", "nowhere:x"}, {"--listen", "127.0.0.1:99999"},
	} {
		if code, _, errs := runTool(append([]string{"serve", "--source", rec}, args...)...); code != exitUsage || errs == "" {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
}
