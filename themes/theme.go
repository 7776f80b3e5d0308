package themes

// Theme gives each role its colour.
type Theme struct {
	Name       string `toml:"name"`
	About      string `toml:"about"`      // one sentence
	Appearance string `toml:"appearance"` // "dark" or "light": the background it is made for

	Background   Colour `toml:"background"` // of the whole screen; empty: the terminal's own
	Text         Colour `toml:"text"`
	Dim          Colour `toml:"dim"`    // what is there but matters less: headings, units, dashes
	Title        Colour `toml:"title"`  // the header line, table headings
	Accent       Colour `toml:"accent"` // keys, the selection's mark, the filter
	Good         Colour `toml:"good"`   // lamps: yes; probes: ok
	Warn         Colour `toml:"warn"`   // limited, waiting
	Bad          Colour `toml:"bad"`    // no, missing, lost records, Xids
	Unknown      Colour `toml:"unknown"`
	Border       Colour `toml:"border"`
	Bar          Colour `toml:"bar"`           // filled part of bars and histograms
	Selected     Colour `toml:"selected"`      // background of the selected row
	SelectedText Colour `toml:"selected_text"` // empty: each role keeps its own

	Lanes []Colour `toml:"lanes"` // contexts in the lane, in turn: at least 6
}
