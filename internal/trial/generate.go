package trial

//go:generate go run ./cmd/chips ../../docs/chips ../../docs/chips.md
