package metrics

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func served(t testing.TB, c *Collector, loopback bool) *httptest.Server {
	t.Helper()
	h, err := Handler(c, loopback)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func get(t testing.TB, url string, set func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set != nil {
		set(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func TestHandler(t *testing.T) {
	b, c := attached(t, Options{})
	b.Feed(machine(t, "").Advance(3 * time.Second))
	s := served(t, c, true)
	code, body, header := get(t, s.URL+"/metrics", nil)
	if code != 200 || !strings.Contains(body, "tsgtop_gpu_switch_tax_ratio{gpu=\"0\"} 0.0") || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%d %s %.80q", code, header.Get("Content-Type"), body)
	}
	code, body, header = get(t, s.URL+"/metrics", func(r *http.Request) { r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0") })
	if code != 200 || !strings.HasSuffix(body, "# EOF\n") || !strings.HasPrefix(header.Get("Content-Type"), "application/openmetrics-text") {
		t.Errorf("OpenMetrics: %d %s %.80q", code, header.Get("Content-Type"), body)
	}
	for host, want := range map[string]int{"localhost:9477": 200, "127.0.0.1": 200, "[::1]:9477": 200, "LOCALHOST": 200, "evil.example": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403} {
		if code, _, _ := get(t, s.URL+"/metrics", func(r *http.Request) { r.Host = host }); code != want {
			t.Errorf("asked as %s: %d, want %d", host, code, want)
		}
	}
	if code, _, _ := get(t, served(t, New(b, Options{}), false).URL+"/metrics", func(r *http.Request) { r.Host = "node7.example" }); code != 200 {
		t.Errorf("on an address of the network: %d", code)
	}
	if code, _, _ := get(t, s.URL+"/debug/pprof/", nil); code != 404 {
		t.Errorf("another path: %d", code)
	}
	resp, err := http.Post(s.URL+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func TestServeStops(t *testing.T) {
	_, c := attached(t, Options{})
	l, loopback, err := Listen("127.0.0.1:0")
	if err != nil || !loopback {
		t.Fatalf("%v, loopback %v", err, loopback)
	}
	h, err := Handler(c, loopback)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h) }()
	// More clients than may be connected at once, none of which says goodbye.
	var wg sync.WaitGroup
	for range 2 * maxConnections {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get("http://" + l.Addr().String() + "/metrics")
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 && resp.StatusCode != 503 {
				t.Errorf("%s", resp.Status)
			}
		})
	}
	wg.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + l.Addr().String() + "/metrics"); err == nil {
		t.Error("it still answers")
	}
	if l, loopback, err := Listen("0.0.0.0:0"); err != nil || loopback {
		t.Errorf("all addresses: %v, loopback %v", err, loopback)
	} else {
		l.Close()
	}
}
