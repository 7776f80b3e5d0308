package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/BurntSushi/toml"

	words "tsgtop/internal/text"
)

// Parse adds to c what a file says. trusted: nobody but root can have written
// it; otherwise distrust says why not, for the error about a key that needs it.
// name is the file's, for errors, which never quote what stands in the file.
func (c *Config) Parse(content []byte, name string, trusted bool, distrust string, known Known) error {
	raw := map[string]toml.Primitive{}
	md, err := toml.Decode(string(content), &raw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, withoutContent(err))
	}
	for _, path := range md.Keys() {
		if len(path) != 1 {
			continue // inside a table, whose own key is told already
		}
		v := value{md, raw[path[0]]}
		line := v.line()
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == path[0] })
		if i < 0 {
			return fmt.Errorf("%s: %sunknown key%s", name, line, suggest(path[0], Keys()))
		}
		k := &keys[i]
		if k.root && !trusted {
			return fmt.Errorf("%s: %s%s decides what root does and counts only from %s, which root alone can write%s",
				name, line, k.name, SystemFile, distrust)
		}
		flag, ok := k.read(c, known, v)
		if !ok {
			return fmt.Errorf("%s: %s%s: want %s", name, line, k.name, k.wanted(known))
		}
		if c.from == nil {
			c.from, c.flag = map[string]string{}, map[string]string{}
		}
		c.from[k.name] = name
		if k.flag != "" {
			c.flag[k.flag] = flag
		}
	}
	return nil
}

// refuser fails to decode whatever it is given: the TOML package then says
// where that stands, which it says in no other way.
type refuser struct{}

func (refuser) UnmarshalTOML(any) error { return errors.New("refused") }

// line is "line N: " where the value stands; empty where that is not known.
func (v value) line() string {
	var pe toml.ParseError
	if err := v.md.PrimitiveDecode(v.prim, &refuser{}); errors.As(err, &pe) && pe.Position.Line > 0 {
		return fmt.Sprintf("line %d: ", pe.Position.Line)
	}
	return ""
}

// withoutContent keeps of a reading error where it is, not what stands there.
func withoutContent(err error) error {
	var pe toml.ParseError
	if errors.As(err, &pe) {
		return fmt.Errorf("line %d: not valid TOML", pe.Position.Line)
	}
	return errors.New("not valid TOML")
}

// suggest names the nearest of our own words, where one is near.
func suggest(word string, known []string) string {
	if len(word) > 64 { // near to none of ours
		return ""
	}
	best, least := "", 4
	for _, k := range known {
		if d := words.Distance(word, k); d < least && 2*d <= len(word)+1 {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
