package cli

import (
	"context"
	"fmt"
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
			found := probes.Diagnose(ctx, probes.Options{Tool: version, NVML: true})
			out.Checks = append(out.Checks, found.Checks...)
			out.Rung = found.Rung
			if o.json {
				if err := writeJSON(o.out, out); err != nil {
					return err
				}
			} else {
				for _, ch := range out.Checks {
					fmt.Fprintf(o.out, "%-8s %-20s %s\n", ch.State, ch.Name, text.Clean(ch.What))
					if ch.Why != "" {
						fmt.Fprintf(o.out, "%29s %s\n", "", text.Clean(ch.Why))
					}
					if ch.Help != "" {
						fmt.Fprintf(o.out, "%29s help: %s\n", "", text.Clean(ch.Help))
					}
				}
				for _, k := range pathOrder {
					if p := out.Paths[k]; p != "" {
						fmt.Fprintf(o.out, "%-8s %-20s %s%s\n", "path", k, text.Clean(p), o.whetherThere(p))
					}
				}
			}
			if !found.Observes {
				return &exitError{code: exitPrivilege}
			}
			return nil
		},
	}
}
