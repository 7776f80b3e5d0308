package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the server. A scrape is small and quick; nothing else is served.
const (
	maxConnections = 64
	maxHeader      = 16 << 10
	stopFor        = 5 * time.Second
)

// Handler answers /metrics, in Prometheus' text format or as OpenMetrics, and
// a page that points there. On a loopback address it answers only who asked for
// that: a web page must not read a user's metrics by a name of its own that
// leads here.
func Handler(c *Collector, loopback bool) (http.Handler, error) {
	reg := prometheus.NewRegistry()
	if err := reg.Register(c); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>tsgtop</title><a href="/metrics">metrics</a>`)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if loopback && !localName(r.Host) {
			http.Error(w, "ask for localhost or a loopback address", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	}), nil
}

// localName tells whether a Host header names this machine to itself.
func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Listen opens the address to serve on. loopback tells whether only this
// machine can reach it.
func Listen(addr string) (l net.Listener, loopback bool, err error) {
	l, err = net.Listen("tcp", addr)
	if err != nil {
		return nil, false, fmt.Errorf("listen on %s: %w", addr, err)
	}
	t, ok := l.Addr().(*net.TCPAddr)
	return &limited{Listener: l, slots: make(chan struct{}, maxConnections)}, ok && t.IP.IsLoopback(), nil
}

// limited lets so many connections be open at once; others wait.
type limited struct {
	net.Listener
	slots chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

type limitedConn struct {
	net.Conn
	free func()
}

func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// Serve answers on l until ctx ends; scrapes under way are finished.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), stopFor)
		defer cancel()
		stopped <- s.Shutdown(end)
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics on %s: %w", l.Addr(), err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop serving metrics: %w", err)
	}
	return nil
}
