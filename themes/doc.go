// Package themes holds the colour themes of the screen as data, and their
// loader. A theme says colours for roles ("good", "dim", the lane's contexts),
// never for places; what a colour says is also said by a word or a sign.
package themes
