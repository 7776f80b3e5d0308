package cli

import "github.com/spf13/cobra"

func newVersion(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Version, commit and how it was built",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if o.json {
				return writeJSON(o.out, b)
			}
			return o.print(b.print)
		},
	}
}
