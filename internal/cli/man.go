package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manHeader is that of every page. Its month is that of SOURCE_DATE_EPOCH,
// where that is set.
func manHeader() *doc.GenManHeader {
	return &doc.GenManHeader{Section: "8", Source: "tsgtop", Manual: "System administration"}
}

func newMan(root *cobra.Command) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man [COMMAND]",
		Short: "Print the manual page (tsgtop man | man -l -)",
		Long: `man prints the manual page of tsgtop, or of one of its commands. With --dir it
writes all of them to a folder, as packages have them.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			root.DisableAutoGenTag = true
			if dir != "" {
				if err := doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Header: manHeader(), Path: dir, CommandSeparator: "-"}); err != nil {
					return fail(exitUsage, "man: write the pages to %s: %w", dir, err)
				}
				return nil
			}
			page := root
			if len(args) > 0 {
				found, _, err := root.Find(args)
				if err != nil || found == root {
					return fail(exitUsage, "man: there is no command %q", args[0])
				}
				page = found
			}
			if err := doc.GenMan(page, manHeader(), c.OutOrStdout()); err != nil {
				return fmt.Errorf("man: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "write the pages of all commands to this folder")
	return c
}
