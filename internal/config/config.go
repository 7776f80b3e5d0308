package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"tsgtop/internal/steer"
)

// Config is what the files say. What no file says is nil or empty.
type Config struct {
	Theme   string
	ASCII   *bool
	Color   string // "auto", "no", "16", "256" or "true"
	FPS     *int
	Mouse   *bool
	Query   *bool
	Columns []string
	Sort    string // id of a column, "-id" the other way round
	Group   string // "process", "user" or "unit"
	Flat    *bool
	Lane    time.Duration
	Window  string // "1s", "10s" or "all"
	GPUs    string // "0,2"
	Args    *bool

	Control   *bool
	Yes       *bool
	Force     *bool
	Audit     string // absolute paths
	Journal   string
	RecordDir string
	Listen    string // host:port

	Roles       []steer.Rule // who is latency-critical and who best-effort, on the screen
	BE, LC      uint64       // timeslices of those, us; 0: the default, and as they have it
	StarveAfter time.Duration

	from map[string]string // key -> the file that had the last word
	flag map[string]string // flag -> its value
}

// From says which file gave a key's value; empty: none did.
func (c *Config) From(key string) string { return c.from[key] }

// Flags are the values of those keys that stand for a flag of the same name,
// as the flag would be given.
func (c *Config) Flags() map[string]string { return c.flag }

// Known are the words of other packages that a value is checked against.
type Known struct {
	Columns []string
}

// key is one key that a file can have.
type key struct {
	name string
	root bool   // counts only from a file that root alone can have written
	flag string // the flag that it stands for; empty: none
	want string // what its value should be, in words
	read func(c *Config, k Known, v value) (flag string, ok bool)
}

// value is a key's value, still to be decoded.
type value struct {
	md   toml.MetaData
	prim toml.Primitive
}

func (v value) into(p any) bool { return v.md.PrimitiveDecode(v.prim, p) == nil }

var keys = []key{
	{name: "theme", flag: "theme", want: "the name of a theme", read: text(func(c *Config) *string { return &c.Theme }, nil)},
	{name: "ascii", flag: "ascii", want: "true or false", read: boolean(func(c *Config) **bool { return &c.ASCII })},
	{name: "color", want: `"auto", "no", "16", "256", "true", or true or false`, read: readColor},
	{name: "fps", flag: "fps", want: "a whole number from 1 to 60", read: readFPS},
	{name: "mouse", flag: "mouse", want: "true or false", read: boolean(func(c *Config) **bool { return &c.Mouse })},
	{name: "query", flag: "query", want: "true or false", read: boolean(func(c *Config) **bool { return &c.Query })},
	{name: "columns", want: "a list of columns", read: readColumns},
	{name: "sort", want: `"tsg" or a column, with a "-" before it for the other direction`, read: readSort},
	{name: "group", want: `"process", "user" or "unit"`, read: text(func(c *Config) *string { return &c.Group }, oneOf("process", "user", "unit"))},
	{name: "flat", want: "true or false", read: boolean(func(c *Config) **bool { return &c.Flat })},
	{name: "lane", want: `a span from "10ms" to "10s"`, read: duration(func(c *Config) *time.Duration { return &c.Lane })},
	{name: "window", want: `"1s", "10s" or "all"`, read: text(func(c *Config) *string { return &c.Window }, oneOf("1s", "10s", "all"))},
	{name: "gpu", flag: "gpu", want: `a list of indices as nvidia-smi counts them, such as [0, 2]`, read: readGPUs},
	{name: "args", flag: "args", want: "true or false", read: boolean(func(c *Config) **bool { return &c.Args })},

	{name: "control", root: true, flag: "control", want: "true or false", read: boolean(func(c *Config) **bool { return &c.Control })},
	{name: "yes", root: true, flag: "yes", want: "true or false", read: boolean(func(c *Config) **bool { return &c.Yes })},
	{name: "force", root: true, flag: "force", want: "true or false", read: boolean(func(c *Config) **bool { return &c.Force })},
	{name: "audit", root: true, flag: "audit", want: "an absolute path", read: text(func(c *Config) *string { return &c.Audit }, filepath.IsAbs)},
	{name: "journal", root: true, flag: "journal", want: "an absolute path", read: text(func(c *Config) *string { return &c.Journal }, filepath.IsAbs)},
	{name: "record_dir", root: true, flag: "record-dir", want: "an absolute path", read: text(func(c *Config) *string { return &c.RecordDir }, filepath.IsAbs)},
	{name: "listen", root: true, flag: "listen", want: `an address and a port, such as "127.0.0.1:9477"`, read: text(func(c *Config) *string { return &c.Listen }, isAddress)},
	{name: "role", root: true, want: `tables [[role]] of role = "lc" or "be", with exe, user, unit, or others = true, and perhaps timeslice`, read: readRoles},
	{name: "be", root: true, want: `a timeslice such as "200us"`, read: timeslice(func(c *Config) *uint64 { return &c.BE })},
	{name: "lc", root: true, want: `a timeslice such as "2ms"`, read: timeslice(func(c *Config) *uint64 { return &c.LC })},
	{name: "starve_after", root: true, want: `a span from "10ms" to "10s"`, read: duration(func(c *Config) *time.Duration { return &c.StarveAfter })},
}

// Keys names all keys that a file can have, those that only root's file can
// have last.
func Keys() []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// RootOnly tells whether a key counts only from a file of root's.
func RootOnly(name string) bool {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	return i >= 0 && keys[i].root
}

func text(at func(*Config) *string, valid func(string) bool) func(*Config, Known, value) (string, bool) {
	return func(c *Config, _ Known, v value) (string, bool) {
		var s string
		if !v.into(&s) || s == "" || len(s) > 4096 || valid != nil && !valid(s) {
			return "", false
		}
		*at(c) = s
		return s, true
	}
}

func boolean(at func(*Config) **bool) func(*Config, Known, value) (string, bool) {
	return func(c *Config, _ Known, v value) (string, bool) {
		var b bool
		if !v.into(&b) {
			return "", false
		}
		*at(c) = &b
		return strconv.FormatBool(b), true
	}
}

func oneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func readColor(c *Config, _ Known, v value) (string, bool) {
	var on bool
	if v.into(&on) {
		c.Color = map[bool]string{true: "auto", false: "no"}[on]
		return "", true
	}
	var s string
	if !v.into(&s) || !oneOf("auto", "no", "16", "256", "true")(s) {
		return "", false
	}
	c.Color = s
	return "", true
}

func readFPS(c *Config, _ Known, v value) (string, bool) {
	var n int
	if !v.into(&n) || n < 1 || n > 60 {
		return "", false
	}
	c.FPS = &n
	return strconv.Itoa(n), true
}

func readColumns(c *Config, k Known, v value) (string, bool) {
	var names []string
	if !v.into(&names) || len(names) == 0 {
		return "", false
	}
	for i, n := range names {
		if !slices.Contains(k.Columns, n) || slices.Contains(names[:i], n) {
			return "", false
		}
	}
	c.Columns = names
	return "", true
}

func readSort(c *Config, k Known, v value) (string, bool) {
	var s string
	if !v.into(&s) {
		return "", false
	}
	if id := strings.TrimPrefix(s, "-"); id != "tsg" && !slices.Contains(k.Columns, id) {
		return "", false
	}
	c.Sort = s
	return "", true
}

// duration reads one of 10 ms to 10 s.
func duration(at func(*Config) *time.Duration) func(*Config, Known, value) (string, bool) {
	return func(c *Config, _ Known, v value) (string, bool) {
		var s string
		if !v.into(&s) {
			return "", false
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < 10*time.Millisecond || d > 10*time.Second {
			return "", false
		}
		*at(c) = d
		return "", true
	}
}

func readGPUs(c *Config, _ Known, v value) (string, bool) {
	var one int
	var list []int
	if v.into(&one) {
		list = []int{one}
	} else if !v.into(&list) || len(list) == 0 {
		return "", false
	}
	words := make([]string, len(list))
	for i, n := range list {
		if n < 0 {
			return "", false
		}
		words[i] = strconv.Itoa(n)
	}
	c.GPUs = strings.Join(words, ",")
	return c.GPUs, true
}

// wanted says what a key's value should be; for columns, which there are.
func (k *key) wanted(known Known) string {
	if k.name == "columns" || k.name == "sort" {
		return fmt.Sprintf("%s (there are: %s)", k.want, strings.Join(known.Columns, ", "))
	}
	return k.want
}
