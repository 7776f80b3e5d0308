// Package trial is the pure part of experiments: plans, the order of their runs,
// what the runs' numbers come to, and how that is reported. actions/trials runs
// them.
package trial

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"tsgtop/internal/rm"
	"tsgtop/internal/steer"
)

// Plan is an experiment: arms, each several times.
type Plan struct {
	Name    string        `json:"name"`
	Targets []string      `json:"targets"` // as the command line has them
	Seed    uint64        `json:"seed"`
	Repeats int           `json:"repeats"`
	Order   string        `json:"order"`      // "interleaved" or "random"
	WarmUp  time.Duration `json:"warm_up_ns"` // after a value was set, before the numbers begin
	Measure time.Duration `json:"measure_ns"`
	StopIf  []Bound       `json:"stop_if,omitempty"`
	Arms    []Arm         `json:"arms"` // the first is the baseline
}

// Arm is what is done in one sort of run. The baseline does nothing.
type Arm struct {
	Name       string        `json:"name"`
	Timeslice  uint64        `json:"timeslice_us,omitempty"`
	Interleave *uint64       `json:"interleave,omitempty"`
	Preempt    time.Duration `json:"preempt_every_ns,omitempty"`
	Roles      bool          `json:"roles,omitempty"` // the target is latency-critical, all others best-effort
	BE         uint64        `json:"be_us,omitempty"` // of a roles arm; 0: the default
	LC         uint64        `json:"lc_us,omitempty"`
}

// Baseline is the arm in which nothing is done.
const Baseline = "baseline"

// Idle tells whether the arm does nothing.
func (a Arm) Idle() bool {
	return a.Timeslice == 0 && a.Interleave == nil && a.Preempt == 0 && !a.Roles
}

// Does says in words what an arm does.
func (a Arm) Does() string {
	var parts []string
	if a.Timeslice > 0 {
		parts = append(parts, fmt.Sprintf("timeslice %d us", a.Timeslice))
	}
	if a.Interleave != nil {
		parts = append(parts, "interleave "+[]string{"low", "medium", "high"}[min(2, *a.Interleave)])
	}
	if a.Preempt > 0 {
		parts = append(parts, fmt.Sprintf("preempted every %v", a.Preempt))
	}
	if a.Roles {
		be := "the default"
		if a.BE > 0 {
			be = fmt.Sprintf("%d us", a.BE)
		}
		s := "latency-critical, others best-effort at " + be
		if a.LC > 0 {
			s += fmt.Sprintf(", itself at %d us", a.LC)
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Limits of a plan.
const (
	maxArms    = 32
	maxRepeats = 1000
	minMeasure = 200 * time.Millisecond
	maxMeasure = 10 * time.Minute
)

// Builtin is the plan that asks the three questions of every chip: are two
// timeslices 32 times apart, low and high interleave, and preempts obeyed?
func Builtin() Plan {
	return Plan{Name: "built-in", Seed: 1, Repeats: 5, Order: "interleaved", WarmUp: 300 * time.Millisecond, Measure: 1500 * time.Millisecond, Arms: []Arm{
		{Name: Baseline},
		{Name: "timeslice-256us", Timeslice: 256},
		{Name: "timeslice-8192us", Timeslice: 8192},
		{Name: "interleave-low", Interleave: level(rm.InterleaveLow)},
		{Name: "interleave-high", Interleave: level(rm.InterleaveHigh)},
		{Name: "preempt-2ms", Preempt: 2 * time.Millisecond},
	}}
}

func level(l uint64) *uint64 { return &l }

// planKeys and armKeys are the words of a plan.
var (
	planKeys = []string{"name", "targets", "seed", "repeats", "order", "warm_up", "measure", "stop_if", "arm"}
	armKeys  = []string{"name", "timeslice", "interleave", "preempt", "roles", "be", "lc"}
)

// table is a TOML table whose values are still to be read.
type table map[string]toml.Primitive

// Parse reads a plan. Its errors say where, and what was meant; they quote
// nothing of the file.
func Parse(content []byte, name string) (Plan, error) {
	p := Builtin()
	p.Name, p.Arms = "", nil
	var raw table
	md, err := toml.Decode(string(content), &raw)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return p, fmt.Errorf("%s: line %d: not valid TOML", name, pe.Position.Line)
		}
		return p, fmt.Errorf("%s: not valid TOML", name)
	}
	r := reader{md: md, name: name}
	for _, k := range keysOf(raw) {
		if err := r.plan(&p, k, raw[k]); err != nil {
			return p, err
		}
	}
	if p.Name == "" {
		p.Name = "plan"
	}
	return p, p.finish(name)
}

func keysOf(t table) []string {
	var keys []string
	for k := range t {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// finish puts the baseline first, and checks what belongs together.
func (p *Plan) finish(name string) error {
	i := slices.IndexFunc(p.Arms, Arm.Idle)
	switch {
	case i < 0:
		p.Arms = slices.Insert(p.Arms, 0, Arm{Name: Baseline})
	case i > 0:
		b := p.Arms[i]
		p.Arms = slices.Insert(slices.Delete(p.Arms, i, i+1), 0, b)
	}
	if len(p.Arms) < 2 {
		return fmt.Errorf("%s: no arm does anything: want [[arm]] with timeslice, interleave, preempt or roles", name)
	}
	seen := map[string]bool{}
	for k := range p.Arms {
		a := &p.Arms[k]
		if a.Name == "" {
			a.Name = fmt.Sprintf("arm-%d", k)
		}
		if seen[a.Name] {
			return fmt.Errorf("%s: two arms have one name", name)
		}
		seen[a.Name] = true
		if !a.Roles && (a.BE > 0 || a.LC > 0) {
			a.Roles = true
		}
		if a.Roles && (a.Timeslice > 0 || a.Interleave != nil || a.Preempt > 0) {
			return fmt.Errorf("%s: arm %d: roles set timeslices themselves: not together with timeslice, interleave or preempt", name, k)
		}
		if k > 0 && a.Idle() {
			return fmt.Errorf("%s: two arms do nothing: one is the baseline", name)
		}
	}
	return nil
}

// reader reads the values of a plan.
type reader struct {
	md   toml.MetaData
	name string
}

// refuser fails to decode whatever it is given: the TOML package then says where
// that stands, which it says in no other way.
type refuser struct{}

func (refuser) UnmarshalTOML(any) error { return errors.New("refused") }

func (r *reader) at(v toml.Primitive) string {
	var pe toml.ParseError
	if err := r.md.PrimitiveDecode(v, &refuser{}); errors.As(err, &pe) && pe.Position.Line > 0 {
		return fmt.Sprintf("%s: line %d: ", r.name, pe.Position.Line)
	}
	return r.name + ": "
}

func (r *reader) want(key string, v toml.Primitive, what string) error {
	return fmt.Errorf("%s%s: want %s", r.at(v), key, what)
}

func (r *reader) plainName(key string, v toml.Primitive, name *string) error {
	if r.md.PrimitiveDecode(v, name) != nil || !plainName(*name) {
		return r.want(key, v, "a name of at most 64 letters, digits, spaces, dots or dashes")
	}
	return nil
}

func (r *reader) plan(p *Plan, key string, v toml.Primitive) error {
	var n int64
	switch key {
	case "name":
		return r.plainName(key, v, &p.Name)
	case "targets":
		if r.md.PrimitiveDecode(v, &p.Targets) != nil || len(p.Targets) == 0 || len(p.Targets) > 16 {
			return r.want(key, v, `a list of targets, such as ["pid:479"]`)
		}
	case "seed":
		if r.md.PrimitiveDecode(v, &n) != nil || n < 0 {
			return r.want(key, v, "a whole number from 0 on")
		}
		p.Seed = uint64(n)
	case "repeats":
		if r.md.PrimitiveDecode(v, &n) != nil || n < 3 || n > maxRepeats {
			return r.want(key, v, fmt.Sprintf("a whole number from 3 to %d: fewer give no interval", maxRepeats))
		}
		p.Repeats = int(n)
	case "order":
		if r.md.PrimitiveDecode(v, &p.Order) != nil || p.Order != "interleaved" && p.Order != "random" {
			return r.want(key, v, `"interleaved" or "random"`)
		}
	case "warm_up":
		return r.duration(key, v, &p.WarmUp, 0, time.Minute)
	case "measure":
		return r.duration(key, v, &p.Measure, minMeasure, maxMeasure)
	case "stop_if":
		return r.bounds(p, key, v)
	case "arm":
		return r.arms(p, v)
	default:
		return fmt.Errorf("%sunknown key%s", r.at(v), steer.Suggest(key, planKeys))
	}
	return nil
}

func (r *reader) duration(key string, v toml.Primitive, d *time.Duration, least, most time.Duration) error {
	var s string
	if r.md.PrimitiveDecode(v, &s) == nil {
		if x, err := time.ParseDuration(s); err == nil && x >= least && x <= most {
			*d = x
			return nil
		}
	}
	return r.want(key, v, fmt.Sprintf(`a duration from %v to %v, such as "2s"`, least, most))
}

func (r *reader) bounds(p *Plan, key string, v toml.Primitive) error {
	var list []string
	var one string
	if r.md.PrimitiveDecode(v, &one) == nil {
		list = []string{one}
	} else if r.md.PrimitiveDecode(v, &list) != nil {
		return r.want(key, v, `a bound such as "wait_p99_us > 5000" or "share < 0.5x"`)
	}
	for _, s := range list {
		b, err := ParseBound(s)
		if err != nil {
			return r.want(key, v, `a bound such as "wait_p99_us > 5000" or "share < 0.5x", of `+strings.Join(Metrics, ", "))
		}
		p.StopIf = append(p.StopIf, b)
	}
	return nil
}

func (r *reader) arms(p *Plan, v toml.Primitive) error {
	var raw []table
	if r.md.PrimitiveDecode(v, &raw) != nil || len(raw) > maxArms {
		return r.want("arm", v, fmt.Sprintf("at most %d tables, each begun by [[arm]]", maxArms))
	}
	for _, t := range raw {
		var a Arm
		for _, k := range keysOf(t) {
			if err := r.arm(&a, k, t[k]); err != nil {
				return err
			}
		}
		p.Arms = append(p.Arms, a)
	}
	return nil
}

func (r *reader) arm(a *Arm, key string, v toml.Primitive) error {
	var s string
	switch key {
	case "name":
		return r.plainName(key, v, &a.Name)
	case "timeslice":
		return r.timeslice(key, v, &a.Timeslice)
	case "be":
		return r.timeslice(key, v, &a.BE)
	case "lc":
		return r.timeslice(key, v, &a.LC)
	case "interleave":
		i := -1
		if r.md.PrimitiveDecode(v, &s) == nil {
			i = slices.Index([]string{"low", "medium", "high"}, s)
		}
		if i < 0 {
			return r.want(key, v, `"low", "medium" or "high"`)
		}
		a.Interleave = level(uint64(i))
	case "preempt":
		return r.duration(key, v, &a.Preempt, 1500*time.Microsecond, 10*time.Second)
	case "roles":
		if r.md.PrimitiveDecode(v, &a.Roles) != nil {
			return r.want(key, v, "true or false")
		}
	default:
		return fmt.Errorf("%sunknown key of an arm%s", r.at(v), steer.Suggest(key, armKeys))
	}
	return nil
}

func (r *reader) timeslice(key string, v toml.Primitive, us *uint64) error {
	var s string
	if r.md.PrimitiveDecode(v, &s) == nil {
		if n, err := steer.Timeslice(s); err == nil && n >= 1 && n <= 100_000_000 {
			*us = n
			return nil
		}
	}
	return r.want(key, v, `a timeslice such as "200us" or "2ms"`)
}

func plainName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_. ", c)) {
			return false
		}
	}
	return true
}

// Sequence gives the order of the arms in each round: turned on by one from
// round to round, or shuffled by the seed. Each round has each arm once.
func (p *Plan) Sequence() [][]int {
	r := rand.New(rand.NewPCG(p.Seed, 0x7472))
	out := make([][]int, p.Repeats)
	for i := range out {
		round := make([]int, len(p.Arms))
		for k := range round {
			round[k] = (k + i) % len(p.Arms)
		}
		if p.Order == "random" {
			r.Shuffle(len(round), func(a, b int) { round[a], round[b] = round[b], round[a] })
		}
		out[i] = round
	}
	return out
}

// Takes is how long the plan takes, about.
func (p *Plan) Takes() time.Duration {
	return time.Duration(p.Repeats*len(p.Arms)) * (p.WarmUp + p.Measure + 100*time.Millisecond)
}
