package steer

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// Role is what a process is to the schedule.
type Role string

// The roles. A process without one is left alone.
const (
	NoRole Role = ""
	LC     Role = "lc" // latency-critical: gets the GPU when it needs it
	BE     Role = "be" // best-effort: fills the gaps
)

// Rule gives a role to processes. All of its parts that are set must fit.
type Rule struct {
	Role      Role
	Exe       string // glob: of the whole path where it has a "/", of its last part otherwise
	User      string
	Unit      string // glob of systemd:…, docker:…, k8s:…, slurm:…
	PID       int    // 0: any
	Others    bool   // all that share a runlist with an LC process
	Timeslice uint64 // us; 0: the role's
}

// ruleWords are the parts of a rule as they are written.
var ruleWords = []string{"exe", "user", "unit", "pid", "others"}

// ParseRule reads a rule as flags have it: WORD=VALUE[,WORD=VALUE…] with exe,
// user, unit and pid (pid:479 too), or others.
func ParseRule(s string) (Rule, error) {
	var r Rule
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		word, value, given := cutEither(part)
		if !given && word == "others" {
			r.Others = true
			continue
		}
		if err := r.set(word, value, given); err != nil {
			return Rule{}, fmt.Errorf("rule %q: %w", s, err)
		}
	}
	return r, r.check()
}

// cutEither cuts at the first "=" or ":".
func cutEither(s string) (word, value string, given bool) {
	if i := strings.IndexAny(s, "=:"); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func (r *Rule) set(word, value string, given bool) error {
	if !slices.Contains(ruleWords, word) {
		return fmt.Errorf("want exe=, user=, unit=, pid= or others%s", suggest(word, ruleWords))
	}
	if !given || value == "" {
		return fmt.Errorf("%s= wants a value", word)
	}
	switch word {
	case "exe":
		r.Exe = value
	case "user":
		r.User = value
	case "unit":
		r.Unit = value
	case "pid":
		n, err := strconv.Atoi(value)
		if err != nil || n <= 0 {
			return fmt.Errorf("pid= wants a process's number")
		}
		r.PID = n
	default:
		return fmt.Errorf("others takes no value")
	}
	return nil
}

// check refuses rules that fit everything, or cannot be read.
func (r Rule) check() error {
	if r.Exe == "" && r.User == "" && r.Unit == "" && r.PID == 0 && !r.Others {
		return fmt.Errorf("a rule without exe, user, unit, pid or others would fit every process")
	}
	for _, glob := range []string{r.Exe, r.Unit} {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("the pattern of a rule has an open bracket or a lone backslash")
		}
	}
	return nil
}

// Fits tells whether the rule's words are about a process; Others is not looked at.
func (r Rule) Fits(p *sched.Process, holders []int) bool {
	if r.Exe == "" && r.User == "" && r.Unit == "" && r.PID == 0 {
		return false
	}
	exe := strings.TrimSuffix(p.Exe, " (deleted)")
	if r.Exe != "" {
		name := exe
		if !strings.Contains(r.Exe, "/") {
			name = path.Base(exe)
		}
		if ok, _ := path.Match(r.Exe, name); !ok || exe == "" {
			return false
		}
	}
	if r.Unit != "" {
		if ok, _ := path.Match(r.Unit, p.Unit); !ok && r.Unit != p.Unit || p.Unit == "" {
			return false
		}
	}
	return (r.User == "" || r.User == p.User) && (r.PID == 0 || r.PID == p.PID || slices.Contains(holders, r.PID))
}

func (r Rule) String() string {
	var parts []string
	for _, p := range []struct{ word, value string }{{"exe", r.Exe}, {"user", r.User}, {"unit", r.Unit}} {
		if p.value != "" {
			parts = append(parts, p.word+"="+p.value)
		}
	}
	if r.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid=%d", r.PID))
	}
	if r.Others {
		parts = append(parts, "others")
	}
	return strings.Join(parts, ",")
}

// RuleTable is a rule as a configuration has it:
//
//	[[role]]
//	role = "lc"
//	exe = "/opt/serve/serve"
//	timeslice = "1s"   # optional
type RuleTable struct {
	Role      string `toml:"role"`
	Exe       string `toml:"exe"`
	User      string `toml:"user"`
	Unit      string `toml:"unit"`
	Others    bool   `toml:"others"`
	Timeslice string `toml:"timeslice"`
}

// Rule checks a table. Its errors quote nothing of it.
func (t RuleTable) Rule() (Rule, error) {
	r := Rule{Role: Role(t.Role), Exe: t.Exe, User: t.User, Unit: t.Unit, Others: t.Others}
	if r.Role != LC && r.Role != BE {
		return r, fmt.Errorf(`role wants "lc" or "be"`)
	}
	if r.Role == LC && r.Others {
		return r, fmt.Errorf(`others can only be "be"`)
	}
	if t.Timeslice != "" {
		us, err := Timeslice(t.Timeslice)
		if err != nil {
			return r, fmt.Errorf("timeslice wants a duration such as \"200us\"")
		}
		r.Timeslice = us
	}
	return r, r.check()
}

// Timeslice reads a timeslice, "200us", "2ms" or a bare number of us.
func Timeslice(s string) (us uint64, err error) {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return n, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d%time.Microsecond != 0 {
		return 0, fmt.Errorf("timeslice %q: want whole microseconds, such as 200us or 2ms", s)
	}
	return uint64(d / time.Microsecond), nil
}

// suggest is ", not …; did you mean …?" where a word is near to one of those known.
func suggest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := text.Distance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// Suggest is the nearest of the words known, as "; did you mean …?", or empty.
func Suggest(word string, known []string) string { return suggest(word, known) }
