package recording

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tsgtop/internal/sched"
)

// scrubber takes names of users and hosts, and arguments, out of events. The
// same name becomes the same stand-in through a recording ("user1"), so that
// who is who can still be told. It knows the names that events and the header
// gave as such, and takes them out of every other string, too, where they
// stand as a word; and home folders' names from all paths.
type scrubber struct {
	alias map[string]string
	users int
	hosts int
}

func newScrubber(h Header, users []string) *scrubber {
	s := &scrubber{alias: make(map[string]string)}
	s.host(h.Host)
	for _, u := range users {
		s.user(u)
	}
	return s
}

// maxAliases bounds the names that are kept. Beyond it a name is replaced by
// the same word for all, and no longer taken out of other strings.
const maxAliases = 4096

func (s *scrubber) host(name string) string {
	if name == "" || name == "localhost" {
		return name
	}
	if a, ok := s.alias[name]; ok {
		return a
	}
	if len(s.alias) >= maxAliases {
		return "host"
	}
	s.hosts++
	a := "host" + strconv.Itoa(s.hosts)
	s.alias[name] = a
	if short, _, ok := strings.Cut(name, "."); ok && short != "" {
		s.alias[short] = a
	}
	return a
}

func (s *scrubber) user(name string) string {
	if name == "" || name == "root" {
		return name
	}
	if a, ok := s.alias[name]; ok {
		return a
	}
	if len(s.alias) >= maxAliases {
		return "user"
	}
	s.users++
	a := "user" + strconv.Itoa(s.users)
	s.alias[name] = a
	return a
}

var (
	homeFolder = regexp.MustCompile(`(/home/|/Users/)([^/\s]+)`)
	userSlice  = regexp.MustCompile(`(user[-@]|uid_)\d+`)
)

// event is the event without names and arguments.
func (s *scrubber) event(e sched.Event) sched.Event {
	switch v := e.(type) {
	case sched.SourceInfo:
		s.host(v.Host)
		v.BootID = ""
		e = v
	case sched.Process:
		s.user(v.User)
		if v.UID != nil && *v.UID != 0 {
			v.UID = nil
		}
		v.Args = nil
		v.Cgroup, v.Unit = withoutUID(v.Cgroup), withoutUID(v.Unit)
		e = v
	case sched.Command:
		s.user(v.Target.User)
		v.Target.Unit = withoutUID(v.Target.Unit)
		e = v
	}
	return mapText(e, s.text)
}

func withoutUID(s string) string { return userSlice.ReplaceAllString(s, "${1}N") }

func (s *scrubber) header(h Header) Header {
	h.Scrubbed = true
	h.Host = s.text(h.Host)
	h.Notes = mapStrings(h.Notes, s.text)
	return h
}

// text is the string without the names that are known.
func (s *scrubber) text(in string) string {
	if strings.Contains(in, "/home/") || strings.Contains(in, "/Users/") {
		in = homeFolder.ReplaceAllStringFunc(in, func(m string) string {
			i := strings.LastIndexByte(m, '/') + 1
			return m[:i] + s.user(m[i:])
		})
	}
	if len(s.alias) == 0 || in == "" {
		return in
	}
	if a, ok := s.alias[in]; ok {
		return a
	}
	return s.words(in)
}

// words replaces names that stand as a word: between characters that no name
// holds, where "-", "_" and "." may stand inside names and beside them.
func (s *scrubber) words(in string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(in); {
		r, n := utf8.DecodeRuneInString(in[i:])
		if !nameRune(r) {
			i += n
			continue
		}
		end := i
		for end < len(in) {
			r, n := utf8.DecodeRuneInString(in[end:])
			if !nameRune(r) && r != '-' && r != '_' && r != '.' {
				break
			}
			end += n
		}
		for i < end {
			stop := s.longest(in, i, end)
			if stop > i {
				b.WriteString(in[done:i])
				b.WriteString(s.alias[in[i:stop]])
				done, i = stop, stop
			}
			for i < end { // to the beginning of the next part
				r, n := utf8.DecodeRuneInString(in[i:])
				i += n
				if !nameRune(r) {
					break
				}
			}
		}
	}
	if done == 0 {
		return in
	}
	b.WriteString(in[done:])
	return b.String()
}

// longest is the end of the longest known name that begins at i and ends
// where a part of the run up to end does, or i.
func (s *scrubber) longest(in string, i, end int) int {
	stop := min(end, i+maxName)
	for stop < end && stop > i && in[stop] != '-' && in[stop] != '_' && in[stop] != '.' {
		stop--
	}
	for stop > i {
		if _, ok := s.alias[in[i:stop]]; ok {
			return stop
		}
		stop--
		for stop > i && in[stop] != '-' && in[stop] != '_' && in[stop] != '.' {
			stop--
		}
	}
	return i
}

// maxName is the length of the longest name that is looked for, in bytes: that of a host.
const maxName = 253

func nameRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// withoutArgs is the event without the arguments of processes.
func withoutArgs(e sched.Event) sched.Event {
	if p, ok := e.(sched.Process); ok && p.Args != nil {
		p.Args = nil
		return p
	}
	return e
}
