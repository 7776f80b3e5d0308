package export

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// message builds one protobuf message. The zero value is empty.
type message struct{ b []byte }

func (m *message) uint(field protowire.Number, v uint64) *message {
	m.b = protowire.AppendVarint(protowire.AppendTag(m.b, field, protowire.VarintType), v)
	return m
}

func (m *message) int(field protowire.Number, v int64) *message { return m.uint(field, uint64(v)) }

func (m *message) bool(field protowire.Number, v bool) *message {
	return m.uint(field, protowire.EncodeBool(v))
}

func (m *message) double(field protowire.Number, v float64) *message {
	m.b = protowire.AppendFixed64(protowire.AppendTag(m.b, field, protowire.Fixed64Type), math.Float64bits(v))
	return m
}

func (m *message) string(field protowire.Number, s string) *message {
	m.b = protowire.AppendString(protowire.AppendTag(m.b, field, protowire.BytesType), s)
	return m
}

func (m *message) sub(field protowire.Number, s *message) *message {
	m.b = protowire.AppendBytes(protowire.AppendTag(m.b, field, protowire.BytesType), s.b)
	return m
}

func (m *message) reset() *message {
	m.b = m.b[:0]
	return m
}
