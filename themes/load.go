package themes

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

//go:embed *.toml
var embedded embed.FS

// Default is the theme of a fresh installation.
const Default = "dark"

const (
	maxThemeBytes = 64 << 10
	minLanes      = 6
	maxLanes      = 32
	maxUserThemes = 100
)

// order of the built-in themes, as the key that switches goes through them.
var order = []string{"dark", "light", "contrast", "okabe-ito", "dracula", "solarized-dark"}

// Set is the themes that can be chosen, in the order in which a key goes
// through them: the built-in ones, then the user's.
type Set struct {
	list []*Theme
}

// Builtin gives the themes that come with the program.
func Builtin() (*Set, error) {
	s := &Set{}
	for _, name := range order {
		f, err := embedded.Open(name + ".toml")
		if err != nil {
			return nil, fmt.Errorf("built-in theme %s: %w", name, err)
		}
		t, err := Read(f, name)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, fmt.Errorf("built-in theme: %w", err)
		}
		s.list = append(s.list, t)
	}
	return s, nil
}

// AddFrom adds the *.toml themes of a folder; one with a built-in's name takes
// its place. The caller opens the folder with the rights of the user whose
// folder it is. A theme that cannot be read is left out; the error joins what
// was wrong with each, and never quotes a file's content.
func (s *Set) AddFrom(fsys fs.FS) error {
	names, err := fs.Glob(fsys, "*.toml")
	if err != nil {
		return fmt.Errorf("themes: list the folder: %w", err)
	}
	var errs []error
	if len(names) > maxUserThemes {
		errs = append(errs, fmt.Errorf("themes: %d files, only the first %d are read", len(names), maxUserThemes))
		names = names[:maxUserThemes]
	}
	for _, file := range names {
		f, err := fsys.Open(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("theme %s: %w", file, err))
			continue
		}
		t, err := Read(f, strings.TrimSuffix(path.Base(file), ".toml"))
		_ = f.Close()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.put(t)
	}
	return errors.Join(errs...)
}

func (s *Set) put(t *Theme) {
	for i, have := range s.list {
		if have.Name == t.Name {
			s.list[i] = t
			return
		}
	}
	s.list = append(s.list, t)
}

// Names lists the themes in order.
func (s *Set) Names() []string {
	names := make([]string, len(s.list))
	for i, t := range s.list {
		names[i] = t.Name
	}
	return names
}

// Get gives the theme of that name, or an error that suggests one.
func (s *Set) Get(name string) (*Theme, error) {
	for _, t := range s.list {
		if t.Name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("no theme of that name%s; there are: %s", suggest(name, s.Names()), strings.Join(s.Names(), ", "))
}

// Next is the theme after the named one, around.
func (s *Set) Next(name string) *Theme {
	i := slices.IndexFunc(s.list, func(t *Theme) bool { return t.Name == name })
	return s.list[(i+1)%len(s.list)]
}

// Read reads one theme. name is the file's name without its ending, and the
// theme's name where the file gives none. An unknown key is an error that
// suggests one.
func Read(r io.Reader, name string) (*Theme, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxThemeBytes+1))
	if err != nil {
		return nil, fmt.Errorf("theme %s: read: %w", name, err)
	}
	if len(b) > maxThemeBytes {
		return nil, fmt.Errorf("theme %s: longer than %d bytes", name, maxThemeBytes)
	}
	t := &Theme{}
	md, err := toml.Decode(string(b), t)
	if err != nil {
		return nil, fmt.Errorf("theme %s: %w", name, withoutContent(err))
	}
	if un := md.Undecoded(); len(un) > 0 {
		return nil, fmt.Errorf("theme %s: %d unknown key(s)%s", name, len(un), suggest(un[0].String(), themeKeys()))
	}
	if t.Name == "" {
		t.Name = name
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("theme %s: %w", name, err)
	}
	return t, nil
}

func (t *Theme) check() error {
	if t.Appearance != "dark" && t.Appearance != "light" {
		return errors.New(`appearance: want "dark" or "light"`)
	}
	v := reflect.ValueOf(*t)
	for i := range v.NumField() {
		if c, ok := v.Field(i).Interface().(Colour); ok && c.bad != nil {
			return fmt.Errorf("%s: %w", v.Type().Field(i).Tag.Get("toml"), c.bad)
		}
	}
	for i, c := range t.Lanes {
		if c.bad != nil {
			return fmt.Errorf("lanes, colour %d: %w", i+1, c.bad)
		}
	}
	if len(t.Lanes) < minLanes || len(t.Lanes) > maxLanes {
		return fmt.Errorf("lanes: %d colours given, want %d to %d", len(t.Lanes), minLanes, maxLanes)
	}
	for _, r := range t.Name {
		if !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return errors.New("name: want letters, digits, - and _")
		}
	}
	if len(t.Name) == 0 || len(t.Name) > 32 {
		return errors.New("name: want 1 to 32 letters")
	}
	return nil
}

// withoutContent keeps of a reading error where it is, not what stands there.
func withoutContent(err error) error {
	var pe toml.ParseError
	if errors.As(err, &pe) {
		return fmt.Errorf("line %d: not valid TOML, or not of the kind that this key wants", pe.Position.Line)
	}
	return errors.New("not valid TOML, or a value is not of the kind that its key wants")
}

func themeKeys() []string {
	var keys []string
	rt := reflect.TypeFor[Theme]()
	for i := range rt.NumField() {
		keys = append(keys, rt.Field(i).Tag.Get("toml"))
	}
	return keys
}

// suggest names the nearest of the known words, where one is near.
func suggest(word string, known []string) string {
	best, dist := "", 4
	for _, k := range known {
		if d := distance(word, k); d < dist && d < len(k) {
			best, dist = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is Levenshtein's, for words of at most 64 bytes.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			prev, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, prev+cost)
		}
	}
	return row[len(b)]
}
