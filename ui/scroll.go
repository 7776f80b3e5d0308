package ui

// scrolled is the first line that a page of the given height shows after a key,
// of total lines; it was top before.
func scrolled(a action, top, height, total int) int {
	switch a {
	case actUp:
		top--
	case actDown:
		top++
	case actPageUp:
		top -= max(height-1, 1)
	case actPageDown:
		top += max(height-1, 1)
	case actTop:
		top = 0
	case actBottom:
		top = total
	}
	return max(min(top, total-height), 0)
}
