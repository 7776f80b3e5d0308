package metrics

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"tsgtop/internal/sched"
)

// updateEvery is how often totals are taken over at least, of the source's own
// clock: more often than the state forgets what ended.
const updateEvery = sched.Time(2e9)

// maxCounters bounds the series of Xids and of commands.
const maxCounters = 256

// Options set up a Collector.
type Options struct {
	MaxSeries int    // programs with series of their own; 0: DefaultMaxSeries
	Version   string // of tsgtop
}

// Collector is a prometheus.Collector of a board's numbers.
type Collector struct {
	board *sched.Board
	opts  Options

	mu      sync.Mutex
	ledger  *ledger
	updated sched.Time
	newest  sched.Time

	restarting bool

	xids     map[xidKey]uint64
	commands map[commandKey]uint64
	judged   map[string]bool // ids of commands that were counted
}

type xidKey struct{ gpu, code string }

type commandKey struct{ op, step, ran, accepted, changed string }

// New makes a collector. Attach it to the board before the source runs.
func New(b *sched.Board, o Options) *Collector {
	if o.MaxSeries <= 0 {
		o.MaxSeries = DefaultMaxSeries
	}
	return &Collector{board: b, opts: o, ledger: newLedger(o.MaxSeries), xids: map[xidKey]uint64{}, commands: map[commandKey]uint64{}, judged: map[string]bool{}}
}

// Attach has the collector follow the board's events, until detach.
func (c *Collector) Attach() (detach func()) { return c.board.Tap(c.follow) }

// Restart resets the board, as when a recording begins again; the counters go
// on. Nobody may feed the board meanwhile.
func (c *Collector) Restart() {
	c.mu.Lock()
	c.update()
	c.restarting = true // a scrape now must not take totals of the new state for the old one's
	c.mu.Unlock()
	c.board.Reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.reset()
	c.updated, c.newest, c.restarting = 0, 0, false
}

// follow counts what the state does not, and takes totals over before they are
// forgotten.
func (c *Collector) follow(events []sched.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		switch v := e.(type) {
		case sched.Xid:
			k := xidKey{index(v.GPU), strconv.FormatUint(uint64(v.Code), 10)}
			if _, there := c.xids[k]; !there && len(c.xids) >= maxCounters {
				k = xidKey{other, other}
			}
			c.xids[k]++
		case sched.Command:
			c.command(&v)
		case sched.TraceBatch:
			c.newest = max(c.newest, v.Time)
		case sched.ProcessExit:
			c.newest = max(c.newest, v.Time)
		}
	}
	if c.newest-c.updated >= updateEvery {
		c.update()
	}
}

// command counts a command once, when its lamps are final.
func (c *Collector) command(v *sched.Command) {
	switch v.Step {
	case sched.StepJudged, sched.StepRefused:
	default:
		return
	}
	if c.judged[v.ID] {
		return
	}
	if len(c.judged) >= 1<<14 {
		clear(c.judged)
	}
	c.judged[v.ID] = true
	k := commandKey{one(string(v.Op), "preempt", "timeslice", "interleave"), string(v.Step), lamp(v.Ran), lamp(v.Accepted.Lamp), lamp(v.Changed.Lamp)}
	if v.Step == sched.StepRefused {
		k.ran, k.accepted, k.changed = "", "", "" // nothing was sent: no lamp was ever lit
	}
	c.commands[k]++
}

func lamp(l sched.Lamp) string { return one(string(l.State), "yes", "no", "unknown", "waiting") }

// one gives s where it is one of those, else "other": a recording can hold anything.
func one(s string, of ...string) string {
	if slices.Contains(of, s) {
		return s
	}
	return other
}

func index(n int) string {
	if n < 0 {
		return unknown
	}
	return strconv.Itoa(n)
}

func (c *Collector) update() {
	if c.restarting {
		return
	}
	t := c.board.Totals()
	c.ledger.take(&t)
	c.updated = max(c.newest, t.Time)
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.gather().metrics { // without the lock: the source must not wait for whoever reads
		ch <- m
	}
}

func (c *Collector) gather() *sink {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.update()
	snap := c.board.Snapshot(sched.SnapshotOptions{})
	out := &sink{}
	out.gauge(dBuild, 1, label(c.opts.Version, 64), runtime.Version())
	out.gauge(dSource, 1, label(snap.Source.Label, 32), label(snap.Source.Host, 128))
	if snap.Time > 0 {
		out.gauge(dTime, float64(snap.Time)/1e9)
	}
	c.collectGPUs(out, snap)
	c.collectPrograms(out, snap)
	c.collectRest(out, snap)
	return out
}

func (c *Collector) collectGPUs(out *sink, snap *sched.Snapshot) {
	for i := range snap.GPUs {
		g := &snap.GPUs[i]
		gpu := index(g.Index)
		out.gauge(dGPU, 1, gpu, label(g.UUID, 64), label(g.Name, 64), label(g.Driver, 32))
		t := c.ledger.gpu(g.Index)
		if t.Traced {
			out.counter(dSwitches, float64(t.Switches), gpu)
			out.counter(dCompeted, float64(t.Competed)/1e9, gpu)
			out.counter(dSwitching, float64(t.Switched)/1e9, gpu)
			out.gauge(dCompeting, float64(g.Competing), gpu)
		}
		if v := g.SwitchTax[sched.Window10s]; v != nil {
			out.gauge(dSwitchTax, *v, gpu)
		}
	}
}

// live is what the snapshot says of a program now.
type live struct {
	tsgs  int
	share *float64
}

func (c *Collector) collectPrograms(out *sink, snap *sched.Snapshot) {
	now := map[program]*live{}
	for i := range snap.TSGs {
		v := &snap.TSGs[i]
		k := c.ledger.series(v)
		l := now[k]
		if l == nil {
			l = &live{}
			now[k] = l
		}
		l.tsgs++
		if sh := v.Score[sched.Window10s].Share; sh != nil {
			if l.share == nil {
				l.share = new(float64)
			}
			*l.share = min(1, *l.share+*sh)
		}
	}
	keys := slices.SortedFunc(maps.Keys(c.ledger.programs), comparePrograms)
	for _, k := range keys {
		s := c.ledger.programs[k]
		labels := []string{index(k.gpu), k.process, k.unit}
		l := now[k]
		if l == nil {
			l = &live{}
		}
		out.gauge(dTSGs, float64(l.tsgs), labels...)
		if l.share != nil {
			out.gauge(dShare, *l.share, labels...)
		}
		if s.turns == 0 && s.residency.N == 0 {
			continue // no turn was seen: that is not known to be none, as on a copy engine
		}
		out.counter(dTurns, float64(s.turns), labels...)
		out.counter(dResident, float64(s.competed)/1e9, labels...)
		out.histogram(dResidency, &s.residency, labels...)
		out.histogram(dWait, &s.wait, labels...)
	}
	out.counter(dFolded, float64(c.ledger.folded))
	out.gauge(dLimit, float64(c.opts.MaxSeries))
}

func comparePrograms(a, b program) int {
	return cmp.Or(cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.process, b.process), cmp.Compare(a.unit, b.unit))
}

func (c *Collector) collectRest(out *sink, snap *sched.Snapshot) {
	for k, n := range c.xids {
		out.counter(dXids, float64(n), k.gpu, k.code)
	}
	for k, n := range c.commands {
		out.counter(dCommands, float64(n), k.op, k.step, k.ran, k.accepted, k.changed)
	}
	for _, l := range []struct {
		where string
		n     uint64
	}{{"ring", snap.Lost.Ring}, {"queue", snap.Lost.Queue}, {"trace", snap.Lost.Trace}, {"overtaken", snap.Lost.Overtaken},
		{"faults", snap.Lost.Faults}, {"compat", snap.Lost.Compat}, {"unmatched", snap.Lost.Unmatched}, {"malformed", snap.Lost.Malformed}} {
		out.counter(dLost, float64(l.n), l.where)
	}
	seen := map[[2]string]bool{} // a recording can have two probes of one name
	for i := range snap.Probes {
		p := &snap.Probes[i]
		gpu := "all"
		if p.GPU >= 0 {
			gpu = index(p.GPU)
		}
		k := [2]string{label(p.Probe, 32), gpu}
		if seen[k] || len(seen) >= maxCounters {
			continue
		}
		seen[k] = true
		out.gauge(dProbe, 1, k[0], k[1], one(string(p.State), "ok", "limited", "missing", "released"))
	}
	out.gauge(dUnattributed, float64(snap.Unattributed.Contexts), "contexts")
	out.gauge(dUnattributed, float64(snap.Unattributed.Channels), "channels")
	out.gauge(dUnattributed, float64(snap.Unattributed.Clients), "clients")
	out.gauge(dCalls, snap.CallRate)
}
