package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/text"
	"tsgtop/probes"
	"tsgtop/probes/doctor"
)

// doctorOutput is what `doctor --json` prints.
type doctorOutput struct {
	SchemaVersion int               `json:"schema_version"`
	Checks        []doctor.Check    `json:"checks"`
	Paths         map[string]string `json:"paths"`
	Rung          string            `json:"rung"`
	Actuators     []string          `json:"actuators"`
}

func newDoctor(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "What works here and what not, why, and what would help",
		Long: `doctor looks at the machine, attaches each probe for a moment and says what
works, what does not, why, and what would help. It changes nothing. It ends with
2 where nothing can be observed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
			defer cancel()
			config := o.checkConfig()
			out := doctorOutput{SchemaVersion: 1, Paths: o.paths(), Actuators: []string{}}
			out.Checks = append(doctor.Machine(doctor.Real()), config)
			acting, usable := diagnoseActuators(doctor.Real())
			found := probes.Diagnose(ctx, probes.Options{Tool: version, NVML: true})
			out.Checks = append(append(out.Checks, acting...), found.Checks...)
			out.Actuators = usable
			out.Rung = found.Rung
			if o.json {
				if err := writeJSON(o.out, out); err != nil {
					return err
				}
			} else {
				err := o.print(func(w io.Writer) {
					for _, ch := range out.Checks {
						printCheck(w, ch)
					}
					for _, k := range pathOrder {
						if p := out.Paths[k]; p != "" {
							fmt.Fprintf(w, "%-8s %-20s %s%s\n", "path", k, text.Clean(p), o.whetherThere(p))
						}
					}
				})
				if err != nil {
					return err
				}
			}
			if !found.Observes {
				return &exitError{code: exitPrivilege}
			}
			return nil
		},
	}
}

// doctorWidth is how wide the doctor's answer is, in cells: that of the
// narrowest terminal in common use.
const doctorWidth = 80

// printCheck prints what was found, why it matters and what would help, below
// each other.
func printCheck(w io.Writer, c doctor.Check) {
	head := fmt.Sprintf("%-8s %-20s ", c.State, text.Clean(c.Name))
	say := func(label, sentence string) {
		if sentence == "" {
			return
		}
		for _, l := range fold(sentence, doctorWidth-len(head)-len(label)) {
			fmt.Fprintf(w, "%s%s%s\n", head, label, l)
			head, label = fmt.Sprintf("%*s", len(head), ""), fmt.Sprintf("%*s", len(label), "")
		}
	}
	say("", c.What)
	say("", c.Why)
	say("help: ", c.Help)
}
