// Package text makes untrusted text safe to show: names of processes, paths,
// driver messages, whatever a recording holds. Everything that a terminal
// could act on, or that a reader could not see, becomes visible.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may follow one character. Real scripts
// use up to four; towers of marks paint over the lines above and below.
const maxMarks = 4

// Clean returns s with everything made visible that a terminal could act on
// or a reader not see: control characters (ESC as \x1b, newline as \n), C1
// controls, bidirectional and zero-width characters, line and paragraph
// separators, blank look-alikes, private and unassigned characters (\u202e,
// \U000e0001), bytes that are not UTF-8 (\xff), and combining marks that have
// no character to combine with. The result is one line of graphic characters
// and ASCII spaces. Clean of a clean string is that string; a backslash stays
// one backslash, so the result is for reading, not for decoding.
func Clean(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	marks := maxMarks // a mark at the very start would land on what stands before
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			escapeByte(&b, s[i])
			marks = maxMarks
		case !visible(r):
			escapeRune(&b, r)
			marks = maxMarks
		case unicode.Is(unicode.M, r):
			if marks >= maxMarks {
				escapeRune(&b, r)
			} else {
				b.WriteRune(r)
				marks++
			}
		default:
			b.WriteRune(r)
			marks = 0
		}
		i += n
	}
	return b.String()
}

// ASCII is Clean for terminals without UTF-8: every character outside ASCII
// becomes an escape, too.
func ASCII(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			escapeByte(&b, s[i])
		case r < utf8.RuneSelf && visible(r):
			b.WriteByte(byte(r))
		default:
			escapeRune(&b, r)
		}
		i += n
	}
	return b.String()
}

// Bound cuts s to at most n bytes, between characters, with "..." at the cut.
// It is for holding foreign text, not for showing it: see Fit.
func Bound(s string, n int) string {
	const mark = "..."
	if len(s) <= n {
		return s
	}
	if n <= len(mark) {
		return mark[:max(n, 0)]
	}
	cut := n - len(mark)
	for cut > 0 && cut > n-len(mark)-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

func isPlainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// visible tells whether a reader sees r as what it is. unicode.IsPrint leaves
// out controls, formats, surrogates, private and unassigned characters, and
// all spaces but the ASCII one; blank says what is invisible all the same.
func visible(r rune) bool { return unicode.IsPrint(r) && !blank(r) }

// blank tells of letters, marks and symbols that show nothing: Unicode's
// Default_Ignorable_Code_Point where it is not of a category that
// unicode.IsPrint leaves out, and the empty Braille pattern.
func blank(r rune) bool {
	switch {
	case r < 0x34f:
		return false
	case r == 0x34f, // combining grapheme joiner
		r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, // Hangul fillers
		r == 0x17b4, r == 0x17b5, // Khmer inherent vowels
		r >= 0x180b && r <= 0x180f, // Mongolian variation selectors
		r == 0x2800,                // Braille pattern blank
		r >= 0xfe00 && r <= 0xfe0f, // variation selectors: terminals disagree about their width
		r == 0xfffc,                // object replacement
		r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

const hexDigits = "0123456789abcdef"

func escapeByte(b *strings.Builder, c byte) {
	b.WriteString(`\x`)
	b.WriteByte(hexDigits[c>>4])
	b.WriteByte(hexDigits[c&15])
}

func escapeRune(b *strings.Builder, r rune) {
	switch r {
	case '\n':
		b.WriteString(`\n`)
		return
	case '\r':
		b.WriteString(`\r`)
		return
	case '\t':
		b.WriteString(`\t`)
		return
	}
	digits := 8
	switch {
	case r < utf8.RuneSelf:
		b.WriteString(`\x`)
		digits = 2
	case r < 0x10000:
		b.WriteString(`\u`)
		digits = 4
	default:
		b.WriteString(`\U`)
	}
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b.WriteByte(hexDigits[r>>shift&15])
	}
}
