package config

import (
	"tsgtop/internal/steer"
)

// maxRoles bounds the rules of a file.
const maxRoles = 64

// readRoles reads the rules by which processes get a role.
func readRoles(c *Config, _ Known, v value) (string, bool) {
	var tables []map[string]any
	if !v.into(&tables) || len(tables) == 0 || len(tables) > maxRoles {
		return "", false
	}
	rules := make([]steer.Rule, 0, len(tables))
	for _, t := range tables {
		var rt steer.RuleTable
		for key, x := range t {
			s, isText := x.(string)
			b, isBool := x.(bool)
			switch {
			case key == "role" && isText:
				rt.Role = s
			case key == "exe" && isText:
				rt.Exe = s
			case key == "user" && isText:
				rt.User = s
			case key == "unit" && isText:
				rt.Unit = s
			case key == "timeslice" && isText:
				rt.Timeslice = s
			case key == "others" && isBool:
				rt.Others = b
			default:
				return "", false
			}
		}
		r, err := rt.Rule()
		if err != nil {
			return "", false
		}
		rules = append(rules, r)
	}
	c.Roles = rules
	return "", true
}

func timeslice(at func(*Config) *uint64) func(*Config, Known, value) (string, bool) {
	return func(c *Config, _ Known, v value) (string, bool) {
		var s string
		if !v.into(&s) {
			return "", false
		}
		us, err := steer.Timeslice(s)
		if err != nil || us < 50 || us > 1_000_000 {
			return "", false
		}
		*at(c) = us
		return "", true
	}
}
