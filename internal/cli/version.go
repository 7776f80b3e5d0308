package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newVersion(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Version, commit and how it was built",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version, "go": runtime.Version(), "arch": runtime.GOARCH}
			if bi, ok := debug.ReadBuildInfo(); ok {
				for _, s := range bi.Settings {
					switch s.Key {
					case "vcs.revision":
						v["commit"] = s.Value
					case "-tags":
						v["tags"] = s.Value
					case "CGO_ENABLED":
						v["cgo"] = s.Value
					}
				}
			}
			if o.json {
				return writeJSON(o.out, v)
			}
			return o.print(func(w io.Writer) {
				fmt.Fprintf(w, "tsgtop %s\ncommit %s\n%s %s, tags %q\n", v["version"], or(v["commit"]), v["go"], v["arch"], v["tags"])
			})
		},
	}
}

func newMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page (tsgtop man | man -l -)",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root.DisableAutoGenTag = true
			return doc.GenMan(root, &doc.GenManHeader{Title: "TSGTOP", Section: "8", Source: "tsgtop", Manual: "System administration"}, c.OutOrStdout())
		},
	}
}
