package metrics

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A real Prometheus scrapes a source that runs, and answers for its switch tax
// and for a share that is worked out from counters.
func TestPrometheusScrapes(t *testing.T) {
	server, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("skip: needs Prometheus (Debian package prometheus)")
	}
	b, c := attached(t, Options{})
	m := machine(t, "tsgs=3")
	b.Feed(m.Advance(12 * time.Second))
	stop, fed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(fed)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				b.Feed(m.Advance(250 * time.Millisecond))
			}
		}
	}()
	defer func() { close(stop); <-fed }()
	u, err := url.Parse(served(t, c, true).URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 200ms, scrape_timeout: 200ms}
scrape_configs: [{job_name: tsgtop, static_configs: [{targets: ["%s"]}]}]
`, u.Host), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	var log strings.Builder
	cmd := exec.Command(server, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	query := func(q string) (string, bool) {
		r, err := exec.Command("promtool", "query", "instant", "http://"+addr, q).CombinedOutput()
		return string(r), err == nil && len(r) > 0
	}
	answers := func(q, want string) {
		t.Helper()
		re := regexp.MustCompile(want)
		var got string
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			var ok bool
			if got, ok = query(q); ok && re.MatchString(got) {
				return
			}
		}
		t.Errorf("Prometheus answers %s with %q, want %s\n%s", q, got, want, log.String())
	}
	answers(`up{job="tsgtop"}`, `=> 1 @`)
	answers(`tsgtop_gpu_switch_tax_ratio{gpu="0"}`, `=> 0\.0[0-9]+ @`)
	answers(`rate(tsgtop_process_resident_competed_seconds_total{process="train.py"}[5s]) / on(gpu) rate(tsgtop_gpu_competed_seconds_total[5s])`, `=> 0\.3[0-9]+ @`)
	answers(`histogram_quantile(0.5, rate(tsgtop_process_residency_seconds_bucket{process="train.py"}[5s]))`, `=> 0\.00(1|2)[0-9]* @`)
}

var metricName = regexp.MustCompile(`\btsgtop_[a-z0-9_]+`)

// exported are the names that a scrape can have.
func exported(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, d := range descs {
		name := metricName.FindString(d.String())
		names = append(names, name)
		if d == dResidency || d == dWait {
			names = append(names, name+"_bucket", name+"_sum", name+"_count")
		}
	}
	return names
}

// The dashboard asks only for what there is, and with labels that there are.
func TestDashboard(t *testing.T) {
	paths, err := filepath.Glob("../../docs/grafana/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	names := exported(t)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Title  string
			UID    string
			Panels []struct {
				Title   string
				Type    string
				Targets []struct{ Expr string }
			}
			Templating struct {
				List []struct{ Query json.RawMessage }
			}
		}
		if err := json.Unmarshal(b, &board); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		asked := 0
		for _, p := range board.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %q asks for nothing", path, p.Title)
			}
			for _, q := range p.Targets {
				asked++
				if !metricName.MatchString(q.Expr) {
					t.Errorf("%s: %q asks for none of our metrics", path, p.Title)
				}
				checkQuery(t, q.Expr)
			}
		}
		if board.Title == "" || board.UID == "" || asked < 8 {
			t.Errorf("%s: %q with %d queries", path, board.Title, asked)
		}
		for _, name := range metricName.FindAllString(string(b), -1) {
			if !slices.Contains(names, name) {
				t.Errorf("%s: no metric %s", path, name)
			}
		}
	}
}

// checkQuery has promtool parse a query, with the dashboard's variables set.
func checkQuery(t *testing.T, expr string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		return
	}
	expr = strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$instance", ".*", "$gpu", ".*").Replace(expr)
	rules := filepath.Join(t.TempDir(), "rules.yml")
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "g", "rules": []any{map[string]any{"record": "r", "expr": expr}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", expr, err, out)
	}
}

// docs/metrics.md explains every metric, and none that there is not.
func TestDocumentedMetrics(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := exported(t)
	for _, d := range descs {
		if name := metricName.FindString(d.String()); !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not explain %s", name)
		}
	}
	for _, name := range metricName.FindAllString(string(b), -1) {
		if !slices.Contains(names, name) && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name) }) {
			t.Errorf("docs/metrics.md speaks of %s, which there is not", name)
		}
	}
}
