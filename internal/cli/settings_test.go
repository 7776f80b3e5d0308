package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"tsgtop/internal/sched"
	"tsgtop/ui"
)

// configured runs a command with a machine's and an operator's configuration,
// and gives the options as the command sees them.
func configured(t *testing.T, system, user string, args ...string) (*options, error) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("SUDO_UID", "")
	put := func(path, content string) {
		if content == "" {
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was := systemConfig
	systemConfig = filepath.Join(dir, "config.toml")
	t.Cleanup(func() { systemConfig = was })
	put(systemConfig, system)
	put(filepath.Join(home, ".config/tsgtop/config.toml"), user)

	var out bytes.Buffer
	o := &options{env: env{strings.NewReader(""), &out, &out}}
	root := &cobra.Command{Use: "tsgtop", SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return o.configure(c) },
		RunE:              func(*cobra.Command, []string) error { return nil }}
	o.register(root)
	o.lookFlags(root)
	root.SetArgs(args)
	return o, root.Execute()
}

func TestFlagsHaveTheLastWord(t *testing.T) {
	o, err := configured(t, "fps = 3\ntheme = \"light\"\nmouse = true\n", "theme = \"contrast\"\ngpu = [1]\nlane = \"1s\"\nwindow = \"all\"\nsort = \"-share\"\ncolumns = [\"pid\"]\n",
		"--gpu", "0,2", "--lane", "20ms")
	if err != nil {
		t.Fatal(err)
	}
	uo, err := o.screenOptions()
	if err != nil {
		t.Fatal(err)
	}
	if o.gpus != "0,2" || uo.FPS != 3 || uo.Theme != "contrast" || !uo.Mouse || uo.Lane != 20*time.Millisecond || uo.Window != sched.WindowAll ||
		uo.Sort != "-share" || !slices.Equal(uo.Columns, []string{"pid"}) {
		t.Errorf("gpus %q, %+v", o.gpus, uo)
	}
}

func TestOperatorsFileArmsNothing(t *testing.T) {
	o, err := configured(t, "", "control = true\n")
	if err == nil || !strings.Contains(err.Error(), "/etc/tsgtop") || o.control {
		t.Errorf("control %t, %v", o.control, err)
	}
	// What is in a folder that others can write in is not root's: as t.TempDir's are.
	o, err = configured(t, "control = true\n", "")
	if err == nil || o.control {
		t.Errorf("control %t, %v", o.control, err)
	}
}

func TestColours(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	for _, tc := range []struct {
		env, conf string
		none      bool
		profile   colorprofile.Profile
	}{
		{"", "", false, colorprofile.Unknown},
		{"", "color = false\n", true, colorprofile.Unknown},
		{"", "color = \"256\"\n", false, colorprofile.ANSI256},
		{"", "color = \"true\"\n", false, colorprofile.TrueColor},
		{"0", "color = \"true\"\n", true, colorprofile.Unknown},
		{"false", "", true, colorprofile.Unknown},
	} {
		t.Setenv("NO_COLOR", tc.env)
		o, err := configured(t, "", tc.conf)
		if err != nil {
			t.Fatal(err)
		}
		uo, err := o.screenOptions()
		if err != nil || uo.NoColor != tc.none || uo.Profile != tc.profile {
			t.Errorf("NO_COLOR=%s, %q: none %t, profile %v, %v", tc.env, tc.conf, uo.NoColor, uo.Profile, err)
		}
	}
}

func TestWrongSettingsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"--theme", "drak"}, {"--window", "2s"}, {"--fps", "0"}, {"--fps", "61"}} {
		o, err := configured(t, "", "", args...)
		if err == nil {
			_, err = o.screenOptions()
		}
		if codeOf(err) != exitUsage || err == nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestDocumentedColumnsAreTheColumns(t *testing.T) {
	b, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^Columns: (.*)\.$`).FindSubmatch(b)
	if m == nil {
		t.Fatal("docs/config.md names no columns")
	}
	if got := strings.Split(strings.ReplaceAll(string(m[1]), "`", ""), ", "); !slices.Equal(got, ui.ColumnIDs()) {
		t.Errorf("docs/config.md: %v, there are %v", got, ui.ColumnIDs())
	}
}
