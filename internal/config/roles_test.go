package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/steer"
)

const roles = `
be = "300us"
starve_after = "150ms"

[[role]]
role = "lc"
exe = "/opt/serve/serve"
timeslice = "2ms"

[[role]]
role = "be"
others = true
`

func TestRoles(t *testing.T) {
	c := &Config{}
	if err := c.Parse([]byte(roles), "c", true, "", Known{}); err != nil {
		t.Fatal(err)
	}
	want := []steer.Rule{{Role: steer.LC, Exe: "/opt/serve/serve", Timeslice: 2000}, {Role: steer.BE, Others: true}}
	if !slices.Equal(c.Roles, want) || c.BE != 300 || c.LC != 0 || c.StarveAfter != 150*time.Millisecond {
		t.Errorf("%+v", c)
	}
	if err := (&Config{}).Parse([]byte(roles), "c", false, "", Known{}); err == nil || !strings.Contains(err.Error(), "root alone can write") {
		t.Errorf("roles from a file that is not root's: %v", err)
	}
	for _, bad := range []string{
		"role = 1", "[[role]]\nrole = \"lc\"", "[[role]]\nrole = \"lx\"\nexe = \"secret\"", "[[role]]\nrole = \"lc\"\nothers = true",
		"[[role]]\nrole = \"be\"\nexe = 1", "[[role]]\nrole = \"be\"\nexec = \"secret\"", "[[role]]\nrole = \"be\"\nexe = \"a[\"",
		"be = \"1us\"", "be = 200", "starve_after = \"1us\"",
	} {
		if err := (&Config{}).Parse([]byte(bad), "c", true, "", Known{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
