package ui

// footer is the last line: the keys of this screen, from the key table.
// Acting keys that do nothing now are dim and stand in parentheses.
func (c *Common) footer(on screenID) string {
	var ps, last []part
	for _, b := range keyTable {
		if b.foot == 0 || b.on&(1<<on) == 0 {
			continue
		}
		if _, ok := c.can(b.need); !ok {
			if b.need != needControl {
				continue
			}
			k := "(" + b.Help().Key + " " + b.short + ")"
			ps = append(ps, words(b.foot+3, roleDim, k))
			continue
		}
		k, short := b.Help().Key, b.short
		here := screenNames[on] == short
		to := &ps
		if b.act == actHelp || b.act == actQuit {
			to = &last // they stand where they are looked for
		}
		*to = append(*to, part{rank: b.foot, cols: cellCount(k) + 1 + cellCount(short), draw: func(l *line) {
			l.put(roleKey, k+" ")
			if here {
				l.put(roleStrong, short)
			} else {
				l.put(roleDim, short)
			}
		}})
	}
	ps = append(ps, last...)
	l := c.line().put(rolePlain, " ")
	sep := "  "
	if partsWidth(sep, ps) > c.width-2 {
		sep = " "
	}
	return l.parts(c.width-2, sep, ps).String()
}
