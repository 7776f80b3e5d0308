package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/config"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
	"tsgtop/probes/doctor"
	"tsgtop/themes"
	"tsgtop/ui"
)

// systemConfig is the machine's configuration; tests have their own.
var systemConfig = config.SystemFile

// settings are what the configuration says, and where it is.
type settings struct {
	loader config.Loader
	conf   *config.Config
	who    error // why it is not known whose configuration to read
}

// look is how the screen is arranged.
type look struct {
	columns []string
	sort    string
	group   string
	flat    bool
	lane    time.Duration
	window  string
	speed   float64 // of a replay
}

// lookFlags adds the flags of the commands that open the screen.
func (o *options) lookFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.look.columns, "columns", nil, "columns to show, in this order")
	f.StringVar(&o.look.sort, "sort", "", "sort by this column; -COLUMN: in the other direction")
	f.StringVar(&o.look.group, "group", "", "group by process, user or unit")
	f.BoolVar(&o.look.flat, "flat", false, "a flat list instead of a tree")
	f.DurationVar(&o.look.lane, "lane", 0, "span of the lane, from 10ms to 10s")
	f.StringVar(&o.look.window, "window", "", "numbers of the last 1s or 10s, or of all")
}

// unconfigured are the commands that work without a configuration, also with a
// broken one: the doctor tells what is wrong with it.
var unconfigured = []string{"doctor", "version", "man", "help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// configure reads the configuration, and sets those flags by it that were not
// given.
func (o *options) configure(c *cobra.Command) error {
	err := o.readConfig()
	for at := c; at != nil; at = at.Parent() {
		if slices.Contains(unconfigured, at.Name()) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	for name, value := range o.conf.Flags() {
		f := c.Flags().Lookup(name)
		if f == nil || f.Changed || name == "control" && o.readOnly {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return fail(exitUsage, "configuration: --%s: %w", name, err)
		}
	}
	return nil
}

// readConfig reads the files. On an error what they say is as if there were
// none.
func (o *options) readConfig() error {
	o.conf = &config.Config{}
	o.loader = config.Loader{System: systemConfig, File: o.config, Known: config.Known{Columns: ui.ColumnIDs()}}
	o.loader.Operator, o.who = config.WhoOperates()
	if o.who != nil {
		if o.config != "" {
			return fail(exitUsage, "--config: it is not known with whose rights to open it: %w", o.who)
		}
		// Nobody's files are read, rather than root's in their place.
		o.loader.Operator = config.Operator{}
	}
	conf, err := o.loader.Load()
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	o.conf = conf
	return nil
}

// paths lists the files that tsgtop reads and writes on this machine.
func (o *options) paths() map[string]string {
	user := o.loader.UserFile()
	if o.config != "" {
		user = o.config
	}
	return map[string]string{
		"config": o.loader.System, "user config": user, "themes": o.loader.ThemesDir(),
		"audit":   first(o.audit, o.conf.Audit, audit.DefaultPath),
		"journal": o.journalPath(),
	}
}

// journalPath is where what commands change is written down first.
func (o *options) journalPath() string {
	if o.conf == nil {
		return journal.DefaultPath
	}
	return first(o.conf.Journal, journal.DefaultPath)
}

// pathOrder is the order in which paths are printed.
var pathOrder = []string{"config", "user config", "themes", "audit", "journal"}

// themes are the built-in ones and the operator's. What is wrong with one of
// theirs is said, and the others are there.
func (o *options) themes() (*themes.Set, error) {
	set, err := themes.Builtin()
	if err != nil {
		return nil, fail(exitInternal, "%w", err)
	}
	if err := o.loader.Themes(set.AddFrom); err != nil {
		fmt.Fprintln(o.err, "tsgtop: "+text.Clean(err.Error()))
	}
	return set, nil
}

// screenOptions are the screen's options as flags and configuration have them:
// all but the source's parts.
func (o *options) screenOptions() (ui.Options, error) {
	set, err := o.themes()
	if err != nil {
		return ui.Options{}, err
	}
	if _, err := set.Get(first(o.theme, themes.Default)); err != nil {
		return ui.Options{}, fail(exitUsage, "theme: %w", err)
	}
	l, c := o.look, o.conf
	uo := ui.Options{
		Themes: set, Theme: o.theme, ASCII: o.ascii, NoColor: o.noColor, FPS: o.fps, Query: o.query, Mouse: o.mouse,
		Columns: l.columns, Sort: first(l.sort, c.Sort), Group: first(l.group, c.Group), Flat: l.flat || c.Flat != nil && *c.Flat,
		Lane: l.lane, Speed: l.speed, Input: o.in, Output: o.out,
	}
	if len(uo.Columns) == 0 {
		uo.Columns = c.Columns
	}
	if uo.Lane == 0 {
		uo.Lane = c.Lane
	}
	switch first(l.window, c.Window) {
	case "", "1s":
		uo.Window = sched.Window1s
	case "10s":
		uo.Window = sched.Window10s
	case "all":
		uo.Window = sched.WindowAll
	default:
		return ui.Options{}, fail(exitUsage, "--window: want 1s, 10s or all")
	}
	if o.fps < 1 || o.fps > 60 {
		return ui.Options{}, fail(exitUsage, "--fps %d: want 1 to 60", o.fps)
	}
	switch {
	case os.Getenv("NO_COLOR") != "" || c.Color == "no":
		uo.NoColor = true
	case c.Color == "16":
		uo.Profile = colorprofile.ANSI
	case c.Color == "256":
		uo.Profile = colorprofile.ANSI256
	case c.Color == "true":
		uo.Profile = colorprofile.TrueColor
	}
	return uo, nil
}

// first is the first of the words that is not empty.
func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// checkConfig is what the doctor says of the configuration.
func (o *options) checkConfig() doctor.Check {
	c := doctor.Check{Name: "configuration", State: doctor.Limited}
	switch err := o.readConfig(); {
	case err != nil:
		c.What, c.Why = "cannot be used", err.Error()
		c.Help = "put it right: other commands do not start until then"
	case o.who != nil:
		c.What, c.Why = "only the machine's is read", o.who.Error()
		c.Help = "run tsgtop as a user that this machine knows"
	default:
		c.State, c.What = doctor.OK, "as the files at the end of this list say"
	}
	return c
}

// whetherThere says in words that a path is not there, as far as the operator
// may know.
func (o *options) whetherThere(path string) string {
	err := o.loader.Operator.Do(func() error {
		_, err := os.Lstat(path)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return " (not there)"
	}
	return ""
}
