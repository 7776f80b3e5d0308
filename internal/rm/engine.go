package rm

import "strconv"

// NV2080 engine types come in runs of numbers. The later runs were added behind
// the last one, so that engines of a kind are not all together. Names are the
// same in drivers 550 to 595; 550 leaves those from 0x34 on reserved.
var engineRuns = []struct {
	first, last uint32
	kind        string
	from        int // number of the first
}{
	{0x01, 0x08, "gr", 0},
	{0x09, 0x12, "ce", 0},
	{0x13, 0x1a, "nvdec", 0},
	{0x1b, 0x1d, "nvenc", 0},
	{0x2b, 0x32, "nvjpeg", 0},
	{0x33, 0x33, "ofa", 0},
	{0x34, 0x3d, "ce", 10},
	{0x3e, 0x3e, "ofa", 1},
	{0x3f, 0x3f, "nvenc", 3},
	{0x40, 0x53, "decompce", 0}, // copy engines that also decompress
}

var engineSingles = map[uint32]string{
	EngineNull: "null",
	0x1e:       "vp",
	0x1f:       "me",
	0x20:       "ppp",
	0x21:       "mpeg",
	0x22:       "sw",
	0x23:       "tsec",
	0x24:       "vic",
	0x25:       "mp",
	0x26:       "sec2",
	0x27:       "host",
	0x28:       "dpu",
	0x29:       "pmu",
	0x2a:       "fbflcn",
	EngineAll:  "all",
}

// Engine types that stand for none or all of them, and the first of those that
// the context-switch trace covers.
const (
	EngineNull      = 0
	EngineGraphics0 = 1
	EngineCopy0     = 9
	EngineAll       = 0xffffffff
)

// EngineName is a short name of an NV2080 engine type, such as "gr0" or "ce3",
// or its number in hex.
func EngineName(engine uint32) string {
	for _, r := range engineRuns {
		if engine >= r.first && engine <= r.last {
			return r.kind + strconv.Itoa(r.from+int(engine-r.first))
		}
	}
	if n, ok := engineSingles[engine]; ok {
		return n
	}
	return hex(engine)
}

// IsGraphicsEngine tells whether the engine is a graphics and compute engine:
// the only ones with a context-switch trace.
func IsGraphicsEngine(engine uint32) bool { return engineKind(engine) == "gr" }

// IsCopyEngine tells whether the engine is a copy engine.
func IsCopyEngine(engine uint32) bool {
	k := engineKind(engine)
	return k == "ce" || k == "decompce"
}

func engineKind(engine uint32) string {
	for _, r := range engineRuns {
		if engine >= r.first && engine <= r.last {
			return r.kind
		}
	}
	return ""
}
