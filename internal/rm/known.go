package rm

// Branches are the driver branches whose ABI was compared, oldest first. The
// layout of any other is taken to be like its nearest older one: see Layout.
func Branches() []int {
	var out []int
	for _, v := range layouts {
		out = append(out, v.branch)
	}
	return out
}
