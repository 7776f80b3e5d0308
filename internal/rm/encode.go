package rm

import (
	"encoding/binary"
	"fmt"
)

// Encode is v, one of this package's layouts or a pointer to one, as the driver
// wants it in memory.
func Encode(v any) ([]byte, error) {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b, nil
}

// Decode reads v, a pointer to one of this package's layouts, from the start of
// b. More bytes than the layout has are left alone; fewer are an error.
func Decode(b []byte, v any) error {
	n := binary.Size(v)
	if n < 0 {
		return fmt.Errorf("decode %T: not a layout of fixed size", v)
	}
	if len(b) < n {
		return fmt.Errorf("decode %T: %d bytes, want %d", v, len(b), n)
	}
	if _, err := binary.Decode(b[:n], binary.LittleEndian, v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}
