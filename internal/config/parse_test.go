package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var known = Known{Columns: []string{"pid", "process", "share"}}

const secret = "hunter2hunter2"

func TestEveryKey(t *testing.T) {
	const all = `# comment
theme = "light"
ascii = true
color = "256"
fps = 4
mouse = true
query = true
columns = ["pid", "share"]
sort = "-share"
group = "unit"
flat = true
lane = "50ms"
window = "10s"
gpu = [0, 2]
args = true
control = true
yes = true
force = true
audit = "/var/log/a.jsonl"
journal = "/var/lib/j"
record_dir = "/srv"
listen = "[::1]:9477"
be = "300us"
lc = "1ms"
starve_after = "100ms"
[[role]]
role = "be"
others = true
`
	c := &Config{}
	if err := c.Parse([]byte(all), "f", true, "", known); err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		if c.From(k) != "f" {
			t.Errorf("%s was not taken in", k)
		}
		if !strings.Contains(all, "\n"+k+" = ") {
			t.Errorf("%s is not tried here", k)
		}
	}
	if c.Theme != "light" || !*c.ASCII || c.Color != "256" || *c.FPS != 4 || !*c.Mouse || !*c.Query || !slices.Equal(c.Columns, []string{"pid", "share"}) ||
		c.Sort != "-share" || c.Group != "unit" || !*c.Flat || c.Lane != 50*time.Millisecond || c.Window != "10s" || c.GPUs != "0,2" || !*c.Args ||
		!*c.Control || !*c.Yes || !*c.Force || c.Audit != "/var/log/a.jsonl" || c.Journal != "/var/lib/j" || c.RecordDir != "/srv" || c.Listen != "[::1]:9477" {
		t.Errorf("%+v", c)
	}
	for flag, want := range map[string]string{"fps": "4", "theme": "light", "gpu": "0,2", "control": "true", "record-dir": "/srv"} {
		if got := c.Flags()[flag]; got != want {
			t.Errorf("flag %s: %q, want %q", flag, got, want)
		}
	}
}

func TestRootsKeysInAnotherFile(t *testing.T) {
	values := map[string]string{"control": "true", "yes": "true", "force": "true", "audit": `"/a"`, "journal": `"/j"`, "record_dir": `"/r"`, "listen": `"127.0.0.1:1"`,
		"role": `[{role = "be", others = true}]`, "be": `"1ms"`, "lc": `"1ms"`, "starve_after": `"1s"`}
	for _, k := range Keys() {
		v, tried := values[k]
		if tried != RootOnly(k) {
			t.Errorf("%s: root's alone: %t, tried here: %t", k, RootOnly(k), tried)
		}
		if !tried {
			continue
		}
		c := &Config{}
		err := c.Parse([]byte("fps = 3\n"+k+" = "+v+"\n"), "/home/x/config.toml", false, "; why", known)
		if err == nil || !strings.Contains(err.Error(), SystemFile) || !strings.Contains(err.Error(), "line 2") || !strings.HasSuffix(err.Error(), "; why") {
			t.Errorf("%s: %v", k, err)
		}
		if len(c.Flags()) > 1 || c.Control != nil || c.Yes != nil || c.Force != nil || c.Audit+c.Journal+c.RecordDir+c.Listen != "" {
			t.Errorf("%s was taken in: %+v", k, c)
		}
	}
}

func TestParseTellsWhereAndNeverWhat(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"\nthem = \"x\"\n", "line 2: unknown key; did you mean theme?"},
		{secret + " = 1\n", "line 1: unknown key"},
		{"\"" + secret + "\" = 1\n", "line 1: unknown key"},
		{"a = '''\ntheme = 3\n'''\n", "unknown key"},
		{"fps = 3\n\n[" + secret + "]\nx = 1\n", "unknown key"},
		{"root:" + secret + ":x\n", "line 1: not valid TOML"},
		{"theme = \"" + secret + "\n", "line 1: not valid TOML"},
		{"fps = 3\nfps = 4\n", "line 2: not valid TOML"},
		{"fps = \"" + secret + "\"\n", "line 1: fps: want a whole number from 1 to 60"},
		{"fps = 0\n", "1 to 60"},
		{"fps = 61\n", "1 to 60"},
		{"ascii = 1\n", "ascii: want true or false"},
		{"color = \"" + secret + "\"\n", "color: want"},
		{"columns = [\"" + secret + "\"]\n", "there are: pid, process, share"},
		{"columns = [\"pid\", \"pid\"]\n", "columns"},
		{"columns = []\n", "columns"},
		{"sort = \"" + secret + "\"\n", "sort: want"},
		{"group = \"" + secret + "\"\n", "group: want"},
		{"lane = \"9ms\"\n", "lane: want"},
		{"lane = 100\n", "lane: want"},
		{"window = \"2s\"\n", "window: want"},
		{"gpu = [-1]\n", "gpu: want"},
		{"gpu = \"" + secret + "\"\n", "gpu: want"},
		{"theme = \"\"\n", "theme: want"},
		{"audit = \"rel/" + secret + "\"\n", "audit: want an absolute path"},
		{"listen = \"" + secret + "\"\n", "listen: want"},
		{"listen = \":0\"\n", "listen: want"},
	} {
		err := (&Config{}).Parse([]byte(tc.in), "f.toml", true, "", known)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "f.toml: ") {
			t.Errorf("%q: %v, want something with %q", tc.in, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error quotes the file: %v", tc.in, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("theme = \"x\"\n[a]\nb=1\n", true)
	f.Add("colums = ['pid']\n", false)
	f.Add("control=true", false)
	f.Fuzz(func(t *testing.T, in string, trusted bool) {
		c := &Config{}
		err := c.Parse([]byte(in), "f", trusted, "", known)
		if !trusted && (c.Control != nil || c.Yes != nil || c.Force != nil || c.Audit+c.Journal+c.RecordDir+c.Listen != "") {
			t.Errorf("%q sets what root does", in)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x00\x1b\n") {
			t.Errorf("the error carries control characters: %q", err)
		}
	})
}
