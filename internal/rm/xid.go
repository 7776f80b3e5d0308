package rm

import "strconv"

// xidNames say in a few words what an Xid is about, after NVIDIA's public
// catalogue and the driver's own constants. Copy engines, video engines and
// NVLink parts have a code each.
var xidNames = map[uint32]string{
	8:   "engine stopped making progress",
	11:  "bad push buffer",
	13:  "graphics engine exception",
	16:  "display hang",
	18:  "bus mastering is off",
	24:  "semaphore timeout",
	25:  "illegal push buffer",
	26:  "framebuffer timeout",
	31:  "MMU fault",
	32:  "PBDMA error: bad push buffer",
	37:  "driver firmware error",
	38:  "driver firmware error",
	42:  "VIC error",
	43:  "channel reset: it stopped being processed",
	44:  "graphics fault during a context switch",
	45:  "channels removed: the process was killed or faulted",
	46:  "GPU stopped processing",
	48:  "ECC error of two bits",
	54:  "auxiliary power is not connected",
	56:  "display error",
	57:  "video memory interface could not be set up",
	58:  "video memory interface unstable",
	59:  "PMU error",
	60:  "SEC2 error",
	61:  "PMU breakpoint",
	62:  "PMU halted",
	63:  "memory page or row retired",
	64:  "memory page or row could not be retired",
	66:  "illegal access by the driver",
	67:  "illegal access by the driver",
	69:  "graphics class error",
	74:  "NVLink error",
	78:  "vGPU start error",
	79:  "GPU has fallen off the bus",
	80:  "PBDMA: push buffer checksum mismatch",
	81:  "VGA error",
	87:  "telemetry report",
	90:  "L2 cache error",
	92:  "many corrected ECC errors",
	93:  "InfoROM erase limit exceeded",
	94:  "contained memory error",
	95:  "uncontained memory error",
	106: "SMBPBI test message",
	107: "SMBPBI test message",
	108: "NVLink remote translation error",
	109: "context switch timeout",
	110: "security fault",
	119: "GSP RPC timeout",
	120: "GSP error",
	121: "C2C link error",
	122: "SPI read failed",
	123: "SPI write failed",
	124: "SPI erase failed",
	125: "InfoROM file system error",
	136: "NVLink training failed",
	137: "NVLink privilege error",
	138: "DLA error",
	140: "uncorrected ECC error escaped",
	141: "fast path error",
	143: "GPU initialisation error",
	144: "NVLink SAW error (driver 550: key rotation)",
	145: "NVLink RLW error",
	146: "NVLink TLW error",
	147: "NVLink TREX error",
	148: "NVLink control error",
	149: "NVLink NETIR error",
	150: "NVLink MSE error",
	151: "key rotation error",
	154: "recovery action changed",
	155: "NVLink error found by software",
	156: "resource retired",
	157: "resource could not be retired",
	158: "GPU fatal timeout",
	159: "CHI error",
	160: "memory channel retired",
	161: "memory channel could not be retired",
	162: "ISINK engaged again",
	163: "ISINK disengaged",
	164: "ISINK lifetime low",
	165: "ISINK lifetime over",
	166: "NVLink security error",
	167: "PCIe fatal timeout",
	168: "GPU memory capacity reduced",
	169: "SEC2 halted",
	170: "NVLink security error",
	171: "uncorrectable DRAM error",
	172: "uncorrectable SRAM error",
	173: "C2C link failed",
	174: "channel reset, process killed silently",
	175: "memory subsystem error",
	176: "many corrected PCIe errors",
}

// xidEngines are the Xids that each name one engine.
var xidEngines = []struct {
	first, last uint32
	engine      string
	from        int // number of the engine that has the first
}{
	{39, 41, "ce", 0}, {70, 72, "ce", 3}, {75, 77, "ce", 6}, {85, 85, "ce", 9}, {126, 135, "ce", 10},
	{47, 47, "nvenc", 0}, {65, 65, "nvenc", 1}, {73, 73, "nvenc", 2}, {142, 142, "nvenc", 3},
	{68, 68, "nvdec", 0}, {83, 84, "nvdec", 1}, {88, 89, "nvdec", 3}, {96, 98, "nvdec", 5},
	{82, 82, "nvjpeg", 0}, {99, 105, "nvjpeg", 1},
	{86, 86, "ofa", 0}, {139, 139, "ofa", 1},
}

// XidName says in a few words what an Xid is about. A code that is not known
// here is shown as such, in decimal as Xids are everywhere.
func XidName(code uint32) string {
	if n, ok := xidNames[code]; ok {
		return n
	}
	for _, r := range xidEngines {
		if code >= r.first && code <= r.last {
			return r.engine + strconv.Itoa(r.from+int(code-r.first)) + " error"
		}
	}
	return "unknown Xid " + strconv.Itoa(int(code))
}
