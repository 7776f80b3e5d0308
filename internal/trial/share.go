package trial

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tsgtop/internal/text"
)

// Share is what of a built-in plan's result can be sent in: the chip, and how it
// takes each knob. Nothing in it tells whose machine it was.
type Share struct {
	Kind          string        `json:"kind"` // shareKind
	SchemaVersion int           `json:"schema_version"`
	Machine       Machine       `json:"machine"`
	Rounds        int           `json:"rounds"`
	Competitors   bool          `json:"competitors"` // somebody competed with the target
	Answers       []ShareAnswer `json:"answers"`
}

const shareKind = "tsgtop-chip"

// ShareAnswer is one knob's, with the numbers behind it.
type ShareAnswer struct {
	Knob    string        `json:"knob"`
	Verdict Verdict       `json:"verdict"`
	Where   string        `json:"where"`
	Calls   int           `json:"calls"`
	Numbers []ShareNumber `json:"numbers"`
}

// ShareNumber is one metric of one arm.
type ShareNumber struct {
	Arm    string      `json:"arm"`
	Metric string      `json:"metric"`
	Base   *float64    `json:"base"`
	Value  *float64    `json:"value"`
	Ratio  *float64    `json:"ratio"`
	CI     *[2]float64 `json:"ci"`
}

// shareMetrics are the numbers that each knob's answer rests on.
var shareMetrics = map[string][]string{
	"timeslice":  {"residency_p50_us", "switch_tax"},
	"interleave": {"share", "turns_per_s"},
	"preempt":    {"residency_mean_us", "wait_p95_us", "switch_tax"},
}

// Share makes the file's content, of the built-in plan's result.
func (r *Report) Share() (*Share, error) {
	if r.Plan.Name != Builtin().Name {
		return nil, errors.New("only the built-in plan's result can be compared with others': use --builtin")
	}
	if r.Ended != "" {
		return nil, fmt.Errorf("the plan did not come to its end: %s", r.Ended)
	}
	s := &Share{Kind: shareKind, SchemaVersion: SchemaVersion, Machine: r.Machine, Rounds: r.Plan.Repeats}
	for i := range r.Runs {
		_, competed := r.Runs[i].Values["others_share"]
		s.Competitors = s.Competitors || competed
	}
	for _, a := range r.Answers {
		out := ShareAnswer{Knob: a.Knob, Verdict: a.Verdict, Where: a.Where, Numbers: []ShareNumber{}}
		for i := range r.Arms {
			arm := &r.Arms[i]
			if arm.knob() != a.Knob {
				continue
			}
			out.Calls += arm.Calls.Sent
			for _, m := range shareMetrics[a.Knob] {
				e := arm.Effect(m)
				out.Numbers = append(out.Numbers, ShareNumber{Arm: arm.Name, Metric: m, Base: e.Base, Value: e.Value, Ratio: e.Ratio, CI: e.CI})
			}
		}
		s.Answers = append(s.Answers, out)
	}
	return s, nil
}

// maxShare bounds a share file, in bytes.
const maxShare = 64 << 10

// ReadShare reads a share file that somebody sent in.
func ReadShare(in io.Reader) (*Share, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxShare+1))
	if err != nil {
		return nil, fmt.Errorf("share file: %w", err)
	}
	if len(b) > maxShare {
		return nil, fmt.Errorf("share file: longer than %d bytes", maxShare)
	}
	var s Share
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("share file: not as tsgtop experiment --share writes it: %w", err)
	}
	if s.Kind != shareKind || s.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("share file: want kind %s, schema version %d", shareKind, SchemaVersion)
	}
	return &s, s.check()
}

func (s *Share) check() error {
	for _, field := range []*string{&s.Machine.Chip, &s.Machine.Driver, &s.Machine.Tool} {
		if len(*field) > 128 {
			return errors.New("share file: a name longer than 128 bytes")
		}
		*field = text.Clean(*field)
	}
	if s.Machine.Chip == "" || s.Machine.Driver == "" {
		return errors.New("share file: without chip or driver")
	}
	if len(s.Answers) > 16 {
		return errors.New("share file: more than 16 answers")
	}
	for _, a := range s.Answers {
		if _, ok := shareMetrics[a.Knob]; !ok {
			return errors.New("share file: a knob that is not known")
		}
		if !slices.Contains([]Verdict{Obeyed, Ignored, Refused, Stub, Untold}, a.Verdict) {
			return errors.New("share file: a verdict that is not known")
		}
		if !slices.Contains([]string{"gsp", "driver", "both", "unknown"}, a.Where) {
			return errors.New("share file: a place that is not known")
		}
		if len(a.Numbers) > 64 {
			return errors.New("share file: more than 64 numbers of one answer")
		}
		for _, n := range a.Numbers {
			if !plainName(n.Arm) || !slices.Contains(shareMetrics[a.Knob], n.Metric) {
				return errors.New("share file: a number of an arm or a metric that is not known")
			}
		}
	}
	return nil
}

// Chips writes the page of all chips. Simulated ones are refused: a page of real
// chips must not have them.
func Chips(w io.Writer, shares []*Share) error {
	for _, s := range shares {
		if s.Machine.Simulated {
			return fmt.Errorf("%s, driver %s is simulated: it does not belong into the list of chips", s.Machine.Chip, s.Machine.Driver)
		}
	}
	return chips(w, shares)
}

func chips(w io.Writer, shares []*Share) error {
	shares = slices.Clone(shares)
	slices.SortStableFunc(shares, func(a, b *Share) int {
		return cmp.Or(strings.Compare(a.Machine.Chip, b.Machine.Chip), strings.Compare(a.Machine.Driver, b.Machine.Driver))
	})
	fmt.Fprint(w, `# Chips: which knob does what

Made from the files in [chips/](chips), which `+"`tsgtop experiment --builtin --share FILE`"+` writes; do not edit. To add
yours, run that beside two processes that keep the GPU busy (kernels longer than 10 ms), look at the file (it names the
chip, the driver and the numbers, and nothing else), put it into chips/ and run `+"`go generate ./internal/trial`"+`.

*obeyed*: accepted, and the trace shows that the hardware did it. *ignored*: accepted, and the trace shows that it did
not. *refused*: by status. *stub*: success, and the GSP was never asked. *unknown*: the trace could not tell.

`)
	if len(shares) == 0 {
		fmt.Fprintln(w, "No result has been sent in yet.")
		return nil
	}
	fmt.Fprint(w, "| chip | driver | module | RM | timeslice | interleave | preempt | rounds |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range shares {
		fmt.Fprintf(w, "| %s%s | %s | %s | %s | %s | %s | %s | %d |\n", cell(s.Machine.Chip), map[bool]string{true: " (simulated)", false: ""}[s.Machine.Simulated], cell(s.Machine.Driver),
			yesNo(s.Machine.Open, "open", "closed"), yesNo(s.Machine.GSP, "GSP", "driver"), s.word("timeslice"), s.word("interleave"), s.word("preempt"), s.Rounds)
	}
	for _, s := range shares {
		fmt.Fprintf(w, "\n## %s, driver %s\n\n| arm | metric | baseline | with it | ratio (99%% interval) |\n|---|---|---|---|---|\n", cell(s.Machine.Chip), cell(s.Machine.Driver))
		for _, a := range s.Answers {
			for _, n := range a.Numbers {
				fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", cell(n.Arm), cell(n.Metric), known(n.Base), known(n.Value), n.ratio())
			}
		}
	}
	return nil
}

func (s *Share) word(knob string) string {
	for _, a := range s.Answers {
		if a.Knob == knob {
			return string(a.Verdict)
		}
	}
	return "-"
}

func known(x *float64) string {
	if x == nil {
		return "-"
	}
	return short(*x)
}

func (n ShareNumber) ratio() string {
	if n.Ratio == nil || n.CI == nil {
		return "-"
	}
	return fmt.Sprintf("x%.3f (%.3f-%.3f)", *n.Ratio, n.CI[0], n.CI[1])
}
