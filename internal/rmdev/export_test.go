//go:build linux

package rmdev

// For the tables of the tests.
var (
	ParseVersion     = parseVersion
	ParseInformation = parseInformation
)
