package bpf

import (
	"crypto/sha256"
	"encoding/hex"
)

// Clang is the compiler that the committed objects were made with, as gen.go
// pins it.
const Clang = "clang-14"

// Object is one compiled eBPF object of this build.
type Object struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// Objects are the objects that are compiled in, for this machine's architecture.
func Objects() []Object {
	var out []Object
	for _, o := range []struct {
		name string
		b    []byte
	}{{"rmcalls", _RMCallsBytes}, {"xid", _XidBytes}, {"action", _ActionBytes}} {
		sum := sha256.Sum256(o.b)
		out = append(out, Object{o.name, hex.EncodeToString(sum[:]), len(o.b)})
	}
	return out
}
