package ui

import (
	"fmt"
	"strings"
)

// KeysMarkdown is docs/keys.md: the key table in words.
func KeysMarkdown() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nMade from the key table in `ui/keys.go`; `go test ./ui -run KeysDocument -update` writes it again.\n")
	section := ""
	for _, k := range keyTable {
		if k.section != section {
			section = k.section
			fmt.Fprintf(&b, "\n## %s\n\n| key | does | on |\n|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| `%s` | %s%s | %s |\n", k.Help().Key, k.Help().Desc, needWords[k.need], screensText(k.on))
	}
	b.WriteString(`
In a panel: Tab, ← and → move between the buttons, Enter presses the one that has the focus, Esc cancels. Cancel has the focus
when a panel opens. In a text field Enter takes what was typed, Esc drops it.
`)
	return b.String()
}

var needWords = map[need]string{
	needControl:     " (when control is armed)",
	needRoles:       " (when control is armed)",
	needController:  " (where the tool can act)",
	needPlayer:      " (of a recording)",
	needMarks:       " (of a recording)",
	needReleaser:    " (live)",
	needRecorder:    " (live)",
	needSeveralGPUs: " (with several GPUs)",
}

func screensText(on screenSet) string {
	if on == onAll {
		return "all screens"
	}
	var names []string
	for id := range numScreens {
		if on&(1<<id) != 0 {
			names = append(names, screenNames[id])
		}
	}
	return strings.Join(names, ", ")
}
