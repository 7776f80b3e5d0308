package ui

import (
	"slices"
	"strconv"
	"strings"

	"tsgtop/internal/sched"
)

// filter is what `/` narrows a table to: words that all must be found, each in
// any of pid, executable, name, user, unit, TSG and handle, or in the one that
// a prefix such as "user:" names. Case does not matter.
type filter struct {
	text  string
	words []filterWord
}

type filterWord struct{ field, word string }

var filterFields = []string{"pid", "exe", "user", "unit", "tsg"}

func parseFilter(s string) filter {
	f := filter{text: s}
	for _, w := range strings.Fields(strings.ToLower(s)) {
		fw := filterWord{word: w}
		for _, field := range filterFields {
			if rest, ok := strings.CutPrefix(w, field+":"); ok {
				fw = filterWord{field, rest}
			}
		}
		if fw.word != "" {
			f.words = append(f.words, fw)
		}
	}
	return f
}

func (f filter) empty() bool { return len(f.words) == 0 }

func (f filter) matches(t *sched.TSGView) bool {
	for _, w := range f.words {
		if !w.matches(t) {
			return false
		}
	}
	return true
}

func (w filterWord) matches(t *sched.TSGView) bool {
	p := &t.Process
	switch w.field {
	case "pid":
		if strconv.Itoa(p.PID) == w.word || p.NSPID != 0 && strconv.Itoa(p.NSPID) == w.word {
			return true
		}
		// A client of MPS computes in the server's TSG.
		return t.Clients > 0 && slices.ContainsFunc(t.HolderPIDs, func(pid int) bool { return strconv.Itoa(pid) == w.word })
	case "exe":
		return has(p.Exe, w.word) || has(p.Comm, w.word)
	case "user":
		return has(p.User, w.word)
	case "unit":
		return has(p.Unit, w.word) || has(p.Cgroup, w.word)
	case "tsg":
		return idText(t.ID.TSG) == w.word || t.ID.String() == w.word || strings.Contains(t.Object.Handle.String(), w.word)
	default:
		return strings.Contains(strconv.Itoa(p.PID), w.word) || has(p.Exe, w.word) || has(p.Comm, w.word) ||
			has(p.User, w.word) || has(p.Unit, w.word) || t.ID.String() == w.word ||
			idText(t.ID.TSG) == w.word || strings.Contains(t.Object.Handle.String(), w.word)
	}
}

// has: lower is in s, whatever its case. Most text is ASCII and short.
func has(s, lower string) bool {
	return strings.Contains(strings.ToLower(s), lower)
}

// matchesText is for lines of a stream, whose words are all in a few strings.
func (f filter) matchesText(fields ...string) bool {
	for _, w := range f.words {
		found := false
		for _, s := range fields {
			if has(s, w.word) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}
