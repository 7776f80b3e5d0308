package steer

import (
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

func TestRules(t *testing.T) {
	p := &sched.Process{PID: 479, Exe: "/opt/serve/serve (deleted)", User: "ada", Unit: "k8s:serve-7"}
	for rule, fits := range map[string]bool{
		"exe=serve": true, "exe=s*": true, "exe=/opt/serve/serve": true, "exe=/opt/*": false, "exe=/opt/*/serve": true, "exe=train": false,
		"user=ada": true, "user:bob": false, "unit=k8s:*": true, "unit=k8s:serve-7": true, "pid:479": true, "pid=9999": true, "pid=1": false,
		"exe=serve,user=ada": true, "exe=serve,user=bob": false, "others": false,
	} {
		r, err := ParseRule(rule)
		if err != nil || r.Fits(p, []int{479, 9999}) != fits {
			t.Errorf("%s: fits %v, %v", rule, r.Fits(p, []int{479, 9999}), err)
		}
	}
	for rule, says := range map[string]string{
		"": "want exe=", "exe": "wants a value", "usr=ada": "did you mean user?", "exe=a[": "open bracket", "pid=x": "process's number", "others=1": "takes no value",
	} {
		if _, err := ParseRule(rule); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", rule, err, says)
		}
	}
	unknown := &sched.Process{PID: 5}
	for _, rule := range []string{"exe=*", "unit=*", "user=ada"} {
		if r, err := ParseRule(rule); err != nil || r.Fits(unknown, nil) {
			t.Errorf("%s fits a process of which nothing is known (%v)", rule, err)
		}
	}
}

func TestTimeslice(t *testing.T) {
	for s, want := range map[string]uint64{"200": 200, "200us": 200, "2ms": 2000, "1s": 1_000_000} {
		if us, err := Timeslice(s); err != nil || us != want {
			t.Errorf("%s: %d %v", s, us, err)
		}
	}
	for _, s := range []string{"", "1ns", "-1ms", "0s", "fast", "1.5us"} {
		if us, err := Timeslice(s); err == nil {
			t.Errorf("%s: %d", s, us)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	f.Add("exe=serve,user=ada")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRule(s)
		if err != nil {
			return
		}
		r.Fits(&sched.Process{PID: 1, Exe: s, Unit: s, User: s}, nil)
		if !r.Others && r.Exe+r.User+r.Unit == "" && r.PID == 0 {
			t.Errorf("%q gives a rule that fits everything", s)
		}
	})
}
