package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"tsgtop/internal/sched"
)

// A trace line holds a batch's records as columns:
//
//	{"k":"trace","t":T,"gpu":0,"ctx":[[6,128,536],[7,128,536]],"x":[0,1,0,1],"b":-21000,"u":32,"dt":[68656,2640,68660],"gap":[[2,5]]}
//
// ctx: the different [tag, context, pid] of the batch, with [.., gi, ci] where
// there are MIG instance ids; x: for each record which of them it is; b: the
// first record's time minus t; dt: the time of each further record minus the
// one before, in units of u ns (the GPU's clock ticks in 32 ns, measured on an
// H200); gap: [index, records missing right before it]. Sums wrap at 64 bits.

// traceKey is what records of one context share.
type traceKey struct {
	context, pid uint32
	tag, gi, ci  uint8
}

// traceDict numbers the keys of one batch.
type traceDict struct {
	keys  []traceKey
	index map[traceKey]int
	x     []int
}

// dictScan is up to how many keys a linear search beats a map.
const dictScan = 16

func (d *traceDict) number(k traceKey) int {
	if len(d.keys) <= dictScan {
		for i := len(d.keys) - 1; i >= 0; i-- {
			if d.keys[i] == k {
				return i
			}
		}
	} else if i, ok := d.index[k]; ok {
		return i
	}
	i := len(d.keys)
	d.keys = append(d.keys, k)
	if d.index == nil {
		d.index = make(map[traceKey]int)
	}
	d.index[k] = i
	return i
}

func (d *traceDict) appendTrace(dst []byte, b sched.TraceBatch) []byte {
	dst = append(dst, `{"k":"trace","t":`...)
	dst = strconv.AppendInt(dst, int64(b.Time), 10)
	dst = append(dst, `,"gpu":`...)
	dst = strconv.AppendInt(dst, int64(b.GPU), 10)
	if len(b.Records) == 0 {
		return append(dst, "}\n"...)
	}
	d.keys, d.x = d.keys[:0], d.x[:0]
	clear(d.index)
	for i := range b.Records {
		r := &b.Records[i]
		d.x = append(d.x, d.number(traceKey{r.Context, r.PID, r.Tag, r.GI, r.CI}))
	}
	dst = d.appendKeys(dst)
	dst = append(dst, `,"x":[`...)
	for i, x := range d.x {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(x), 10)
	}
	dst = append(dst, `],"b":`...)
	dst = strconv.AppendInt(dst, int64(b.Records[0].Time-b.Time), 10)
	dst = appendTimes(dst, b.Records)
	dst = appendGaps(dst, b.Records)
	return append(dst, "}\n"...)
}

func (d *traceDict) appendKeys(dst []byte) []byte {
	dst = append(dst, `,"ctx":[`...)
	for i, k := range d.keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = strconv.AppendUint(dst, uint64(k.tag), 10)
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, uint64(k.context), 10)
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, uint64(k.pid), 10)
		if k.gi != 0 || k.ci != 0 {
			dst = append(dst, ',')
			dst = strconv.AppendUint(dst, uint64(k.gi), 10)
			dst = append(dst, ',')
			dst = strconv.AppendUint(dst, uint64(k.ci), 10)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

func appendTimes(dst []byte, records []sched.TraceRecord) []byte {
	var unit uint64 // greatest common divisor of all differences
	for i := 1; i < len(records) && unit != 1; i++ {
		d := int64(records[i].Time - records[i-1].Time)
		if d == math.MinInt64 {
			unit = 1
			break
		}
		for a, b := uint64(max(d, -d)), unit; ; a, b = b, a%b {
			if b == 0 {
				unit = a
				break
			}
		}
	}
	unit = max(unit, 1)
	if unit != 1 {
		dst = append(dst, `,"u":`...)
		dst = strconv.AppendUint(dst, unit, 10)
	}
	if len(records) == 1 {
		return dst
	}
	dst = append(dst, `,"dt":[`...)
	for i := 1; i < len(records); i++ {
		if i > 1 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(records[i].Time-records[i-1].Time)/int64(unit), 10)
	}
	return append(dst, ']')
}

func appendGaps(dst []byte, records []sched.TraceRecord) []byte {
	some := false
	for i := range records {
		if records[i].Gap == 0 {
			continue
		}
		if some {
			dst = append(dst, ',')
		} else {
			dst = append(dst, `,"gap":[`...)
			some = true
		}
		dst = append(dst, '[')
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, uint64(records[i].Gap), 10)
		dst = append(dst, ']')
	}
	if some {
		dst = append(dst, ']')
	}
	return dst
}

// traceLine is a trace line as it stands in the file.
type traceLine struct {
	Time  sched.Time `json:"t"`
	GPU   int        `json:"gpu"`
	Keys  intRows    `json:"ctx"`
	Index ints       `json:"x"`
	Begin int64      `json:"b"`
	Unit  *int64     `json:"u"`
	Delta ints       `json:"dt"`
	Gaps  intRows    `json:"gap"`
}

func decodeTrace(line []byte) (sched.Event, error) {
	var l traceLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	b := sched.TraceBatch{Time: l.Time, GPU: l.GPU}
	n := len(l.Index)
	if n == 0 && len(l.Delta) == 0 && len(l.Gaps) == 0 {
		return b, nil
	}
	if len(l.Delta) != n-1 {
		return nil, fmt.Errorf("trace: %d records, but %d differences of time", n, len(l.Delta))
	}
	keys, err := decodeKeys(l.Keys)
	if err != nil {
		return nil, err
	}
	unit := int64(1)
	if l.Unit != nil {
		unit = *l.Unit
	}
	b.Records = make([]sched.TraceRecord, n)
	at := int64(l.Time) + l.Begin
	for i, x := range l.Index {
		if x < 0 || x >= int64(len(keys)) {
			return nil, fmt.Errorf("trace: record %d is of context %d of %d", i, x, len(keys))
		}
		if i > 0 {
			at += l.Delta[i-1] * unit
		}
		k := &keys[x]
		b.Records[i] = sched.TraceRecord{Time: sched.Time(at), Context: k.context, PID: k.pid, Tag: k.tag, GI: k.gi, CI: k.ci}
	}
	for _, g := range l.Gaps {
		if len(g) != 2 || g[0] < 0 || g[0] >= int64(n) || g[1] < 0 || g[1] > math.MaxUint32 {
			return nil, fmt.Errorf("trace: gap %v is not one of the %d records and a count", g, n)
		}
		b.Records[g[0]].Gap = uint32(g[1])
	}
	return b, nil
}

func decodeKeys(rows intRows) ([]traceKey, error) {
	keys := make([]traceKey, len(rows))
	for i, r := range rows {
		if len(r) != 3 && len(r) != 5 {
			return nil, fmt.Errorf("trace: context %v: want tag, context, pid and maybe gi, ci", r)
		}
		limits := [5]int64{math.MaxUint8, math.MaxUint32, math.MaxUint32, math.MaxUint8, math.MaxUint8}
		for j, v := range r {
			if v < 0 || v > limits[j] {
				return nil, fmt.Errorf("trace: context %v: number %d is out of range", r, j+1)
			}
		}
		keys[i] = traceKey{tag: uint8(r[0]), context: uint32(r[1]), pid: uint32(r[2])}
		if len(r) == 5 {
			keys[i].gi, keys[i].ci = uint8(r[3]), uint8(r[4])
		}
	}
	return keys, nil
}

// ints is an array of integers, read without a detour through reflection:
// there are two for each switch of a recording.
type ints []int64

var errNotInts = errors.New("trace: want an array of integers")

// UnmarshalJSON reads one array; b is valid JSON.
func (v *ints) UnmarshalJSON(b []byte) error {
	out, rest, err := parseInts(b, (*v)[:0])
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return errNotInts
	}
	*v = out
	return nil
}

// intRows is an array of short arrays of integers.
type intRows [][]int64

// UnmarshalJSON reads one array of arrays; b is valid JSON.
func (v *intRows) UnmarshalJSON(b []byte) error {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '[' {
		return errNotInts
	}
	b = skipSpace(b[1:])
	var out [][]int64
	for len(b) > 0 && b[0] != ']' {
		if len(out) >= maxTraceRecords {
			return fmt.Errorf("trace: more than %d entries in one line", maxTraceRecords)
		}
		row, rest, err := parseInts(b, make([]int64, 0, 5))
		if err != nil {
			return err
		}
		out = append(out, row)
		b = skipSpace(rest)
		if len(b) > 0 && b[0] == ',' {
			b = skipSpace(b[1:])
		}
	}
	*v = out
	return nil
}

// parseInts reads an array of integers from the start of b, which is valid
// JSON, and gives what follows it.
func parseInts(b []byte, out []int64) (ints, []byte, error) {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '[' {
		return nil, b, errNotInts
	}
	b = b[1:]
	if out == nil {
		out = make([]int64, 0, min(len(b)/3+1, 1024))
	}
	for {
		b = skipSpace(b)
		if len(b) == 0 {
			return nil, b, errNotInts
		}
		if b[0] == ']' {
			return out, skipSpace(b[1:]), nil
		}
		if b[0] == ',' {
			b = b[1:]
			continue
		}
		if len(out) >= maxTraceRecords {
			return nil, b, fmt.Errorf("trace: more than %d numbers in one array", maxTraceRecords)
		}
		n, rest, err := parseInt(b)
		if err != nil {
			return nil, b, err
		}
		out = append(out, n)
		b = rest
	}
}

func parseInt(b []byte) (int64, []byte, error) {
	i, negative := 0, false
	if b[0] == '-' {
		i, negative = 1, true
	}
	start, v := i, uint64(0)
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		v = v*10 + uint64(b[i]-'0')
	}
	switch {
	case i == start || (i < len(b) && (b[i] == '.' || b[i] == 'e' || b[i] == 'E')):
		return 0, b, errNotInts
	case i-start > 19 || (!negative && v > math.MaxInt64) || (negative && v > 1<<63):
		return 0, b, fmt.Errorf("trace: number %.24s does not fit 64 bits", b)
	case negative:
		return int64(-v), b[i:], nil
	}
	return int64(v), b[i:], nil
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}
