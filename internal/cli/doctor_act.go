//go:build linux

package cli

import (
	"strings"

	"tsgtop/actions"
	"tsgtop/actions/journal"
	"tsgtop/actions/kfunc"
	"tsgtop/internal/rmdev"
	"tsgtop/probes/doctor"
)

// diagnoseActuators says of each way for a command to go whether it is open here,
// and gives the names of those that are, the one that is taken first.
func diagnoseActuators(s doctor.System) (checks []doctor.Check, usable []string) {
	usable = []string{}
	fd := actions.NewFD(rmdev.New(nil), nil, journal.Owner{}, nil, "")
	k := actions.NewKFunc(fd)
	defer k.Release()
	for _, x := range []struct {
		name, what string
		cap        doctor.Cap // without which it cannot work, whatever else is there
		capName    string
		why        func() string
		help       func() string
	}{
		{"kfunc", "commands by an eBPF program through tsgtop.ko", doctor.CapSysAdmin, "CAP_SYS_ADMIN", k.Why, kfuncHelp},
		{"fd", "commands through a descriptor that is borrowed from the target's process", doctor.CapSysPtrace, "CAP_SYS_PTRACE", fd.Why, func() string { return "" }},
	} {
		c := doctor.Check{Name: "actuator " + x.name, State: doctor.OK, What: x.what}
		if !s.Caps().Has(x.cap) {
			c.State, c.Why = doctor.Missing, "it needs "+x.capName
		} else if why := x.why(); why != "" {
			c.State, c.Why, c.Help = doctor.Missing, why, x.help()
		} else {
			usable = append(usable, x.name)
		}
		checks = append(checks, c)
	}
	if len(usable) == 1 { // one is enough to act
		for i := range checks {
			if checks[i].State == doctor.Missing {
				checks[i].State = doctor.Limited
				checks[i].Why += "; commands go by " + usable[0] + " instead"
			}
		}
	}
	return checks, usable
}

// kfuncHelp is what would help against each reason why the module is not usable.
func kfuncHelp() string {
	var all []string
	for _, r := range kfunc.ThisMachine().Reasons() {
		if r.Help != "" {
			all = append(all, r.Help)
		}
	}
	return strings.Join(all, "; ")
}
