package recording

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/sched"
)

// Bounds of looking for a recording's end.
const (
	endFrames = 64      // frames from the end that are tried
	endBlocks = 8 << 20 // zstd blocks that are walked over
	endText   = 64 << 20
)

// frameRange is where in the file a zstd frame lies, in bytes from its beginning.
type frameRange struct{ from, to int64 }

// lastFrames walks from frame to frame by their headers, without
// decompressing, and gives the last whole ones, in their order.
func lastFrames(r io.ReaderAt, size int64) []frameRange {
	var ring [endFrames]frameRange
	n, blocks := 0, 0
	for at := int64(0); at < size; n++ {
		end, err := frameEnd(r, at, size, &blocks)
		if err != nil {
			break
		}
		ring[n%endFrames] = frameRange{at, end}
		at = end
	}
	out := make([]frameRange, 0, endFrames)
	for i := max(0, n-endFrames); i < n; i++ {
		out = append(out, ring[i%endFrames])
	}
	return out
}

var errNoFrame = errors.New("no whole zstd frame")

func frameEnd(r io.ReaderAt, at, size int64, blocks *int) (int64, error) {
	var buf [zstd.HeaderMaxSize]byte
	n, err := r.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(buf[:n]); err != nil {
		return 0, err
	}
	at += int64(h.HeaderSize)
	if h.Skippable {
		at += int64(h.SkippableSize)
		if at > size {
			return 0, errNoFrame
		}
		return at, nil
	}
	// Blocks: 3 bytes little endian, bit 0 last, bits 1-2 type, then size (RFC 8878, 3.1.1.2).
	for last := false; !last; {
		if *blocks++; *blocks > endBlocks {
			return 0, errNoFrame
		}
		var b [3]byte
		if at+3 > size {
			return 0, errNoFrame
		}
		if _, err := r.ReadAt(b[:], at); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		last = v&1 != 0
		at += 3
		switch v >> 1 & 3 {
		case 0, 2: // raw, compressed
			at += int64(v >> 3)
		case 1: // one byte, repeated
			at++
		default:
			return 0, errNoFrame
		}
	}
	if h.HasCheckSum {
		at += 4
	}
	if at > size {
		return 0, errNoFrame
	}
	return at, nil
}

// lastInstant is the newest time that the last whole frames tell of; 0 where
// they tell of none.
func lastInstant(r io.ReaderAt, size int64) sched.Time {
	frames := lastFrames(r, size)
	for i := len(frames) - 1; i >= 0; i-- {
		f := frames[i]
		if t := newestIn(io.NewSectionReader(r, f.from, f.to-f.from)); t != 0 {
			return t
		}
	}
	return 0
}

func newestIn(frame io.Reader) sched.Time {
	dec, err := zstd.NewReader(frame, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoder))
	if err != nil {
		return 0
	}
	defer dec.Close()
	var newest sched.Time
	lines := bufio.NewScanner(io.LimitReader(dec, endText))
	lines.Buffer(make([]byte, 0, 64<<10), maxLine+1)
	for lines.Scan() {
		line := lines.Bytes()
		if bytes.HasPrefix(line, []byte(`{"k":"header"`)) {
			continue
		}
		if e, err := decodeLine(line); err == nil {
			newest = max(newest, e.When())
		}
	}
	return newest
}
