package rm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

func TestControlName(t *testing.T) {
	for cmd, want := range map[uint32]string{
		0xa06c0101: "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE",
		0xa06c0103: "NVA06C_CTRL_CMD_SET_TIMESLICE",
		0xa06c0104: "NVA06C_CTRL_CMD_GET_TIMESLICE",
		0xa06c0105: "NVA06C_CTRL_CMD_PREEMPT",
		0xa06c0106: "NVA06C_CTRL_CMD_GET_INFO",
		0xa06c0107: "NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL",
		0xa06c0108: "NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL",
		0xa06f0103: "NVA06F_CTRL_CMD_GPFIFO_SCHEDULE",
		0xa06f0111: "NVA06F_CTRL_CMD_RESTART_RUNLIST",
		0xa06f0112: "NVA06F_CTRL_CMD_STOP_CHANNEL",
		0xa06f0113: "NVA06F_CTRL_CMD_GET_CONTEXT_ID",
		0xb06f010f: "NVB06F_CTRL_CMD_GET_CHANNEL_HW_STATE",
		0xc36f0108: "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN",
		0x90cd0104: "NV_EVENT_BUFFER_CTRL_CMD_FLUSH",
		0x20801215: "NV2080_CTRL_CMD_GR_GET_CTXSW_STATS",
		0x20801238: "NV2080_CTRL_CMD_GR_FECS_BIND_EVTBUF_FOR_UID_V2",
		0x20800194: "NV2080_CTRL_CMD_GPU_SET_COMPUTE_POLICY_CONFIG",
		0x20800195: "NV2080_CTRL_CMD_GPU_GET_COMPUTE_POLICY_CONFIG",
		0x00000d03: "NV0000_CTRL_CMD_CLIENT_GET_ACCESS_RIGHTS",
		0x00000489: "NV0000_CTRL_CMD_DIAG_DUMP_RPC",
		// unknown ones, one digit or one branch away from known ones
		0x20801fff: "0x20801fff",
		0xa06c0177: "0xa06c0177",
		0xa16c0103: "0xa16c0103",
		0x00000d99: "0xd99",
		0xffffffff: "0xffffffff",
	} {
		if got := ControlName(cmd); got != want {
			t.Errorf("ControlName(%#x) = %q, want %q", cmd, got, want)
		}
	}
	if got := len(controlNames); got < 1800 {
		t.Errorf("%d control names, want the headers' 1,831", got)
	}
}

// A CUDA process issues these between its start and its first kernel.
func TestControlsOfCUDAStartHaveNames(t *testing.T) {
	for cmd, want := range map[uint32]string{
		0x00000101: "SYSTEM_GET_BUILD_VERSION",
		0x00000127: "SYSTEM_GET_P2P_CAPS",
		0x0000013a: "SYSTEM_GET_P2P_CAPS_MATRIX",
		0x00000136: "SYSTEM_GET_FABRIC_STATUS",
		0x00000201: "GPU_GET_ATTACHED_IDS",
		0x00000202: "GPU_GET_ID_INFO",
		0x00000205: "GPU_GET_ID_INFO_V2",
		0x00000214: "GPU_GET_PROBED_IDS",
		0x00000215: "GPU_ATTACH_IDS",
		0x0000021b: "GPU_GET_PCI_INFO",
		0x0000027b: "GPU_GET_MEMOP_ENABLE",
		0x00000d01: "CLIENT_GET_ADDR_SPACE_TYPE",
		0x00000d04: "CLIENT_SET_INHERITED_SHARE_POLICY",
		0x00000d07: "CLIENT_OBJECTS_ARE_DUPLICATES",
		0x00003d05: "OS_UNIX_EXPORT_OBJECT_TO_FD",
		0x00800201: "GPU_GET_CLASSLIST",
		0x00800280: "GPU_GET_NUM_SUBDEVICES",
		0x00800289: "GPU_GET_VIRTUALIZATION_MODE",
		0x00800292: "GPU_GET_CLASSLIST_V2",
		0x0080170d: "FIFO_GET_CHANNELLIST",
		0x00801713: "FIFO_GET_CAPS_V2",
		0x00801307: "FB_GET_CAPS_V2",
		0x00801401: "HOST_GET_CAPS",
		0x00801402: "HOST_GET_CAPS_V2",
		0x00801909: "PERF_CUDA_LIMIT_SET_CONTROL",
		0x20800102: "GPU_GET_INFO_V2",
		0x20800110: "GPU_GET_NAME_STRING",
		0x20800111: "GPU_GET_SHORT_NAME_STRING",
		0x20800119: "GPU_GET_SIMULATION_INFO",
		0x2080012f: "GPU_QUERY_ECC_STATUS",
		0x20800131: "GPU_QUERY_COMPUTE_MODE_RULES",
		0x20800142: "GPU_GET_ID",
		0x2080014a: "GPU_GET_GID_INFO",
		0x20800147: "GPU_GET_ENGINE_PARTNERLIST",
		0x20800170: "GPU_GET_ENGINES_V2",
		0x2080018b: "GPU_GET_ACTIVE_PARTITION_IDS",
		0x2080018d: "GPU_GET_PIDS",
		0x20800301: "EVENT_SET_NOTIFICATION",
		0x20800403: "TIMER_GET_TIME",
		0x20800406: "TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO",
		0x20800407: "TIMER_SET_GR_TICK_FREQ",
		0x20801201: "GR_GET_INFO",
		0x20801208: "GR_CTXSW_ZCULL_BIND",
		0x20801218: "GR_GET_CTX_BUFFER_SIZE",
		0x20801219: "GR_GET_CTX_BUFFER_INFO",
		0x2080121b: "GR_GET_GLOBAL_SM_ORDER",
		0x20801227: "GR_GET_CAPS_V2",
		0x2080122a: "GR_GET_GPC_MASK",
		0x2080122b: "GR_GET_TPC_MASK",
		0x20801301: "FB_GET_INFO",
		0x20801303: "FB_GET_INFO_V2",
		0x20801701: "MC_GET_ARCH_INFO",
		0x20801801: "BUS_GET_PCI_INFO",
		0x20801802: "BUS_GET_INFO",
		0x20801803: "BUS_GET_PCI_BAR_INFO",
		0x20801823: "BUS_GET_INFO_V2",
		0x2080182a: "BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS",
		0x2080182b: "BUS_GET_C2C_INFO",
		0x20802a0a: "CE_GET_ALL_CAPS",
		0x20803001: "NVLINK_GET_NVLINK_CAPS",
		0x20803002: "NVLINK_GET_NVLINK_STATUS",
		0x20802a03: "CE_GET_CAPS_V2",
		0x00000279: "GPU_QUERY_DRAIN_STATE",
		0x00000a04: "SYNC_GPU_BOOST_GROUP_INFO",
		0x00800288: "GPU_QUERY_SW_STATE_PERSISTENCE",
		0x20800145: "GPU_ACQUIRE_COMPUTE_MODE_RESERVATION",
		0x20800146: "GPU_RELEASE_COMPUTE_MODE_RESERVATION",
		0x208001a3: "GET_GPU_FABRIC_PROBE_INFO",
		0x20801702: "MC_SERVICE_INTERRUPTS",
		0x2080200a: "PERF_BOOST",
		0x20802209: "RC_GET_WATCHDOG_INFO",
		0x2080220c: "RC_RELEASE_WATCHDOG_REQUESTS",
		0x20802210: "RC_SOFT_DISABLE_WATCHDOG",
		0x20803601: "GSP_GET_FEATURES",
		0x503c0102: "REGISTER_VA_SPACE",
		0x503c0104: "REGISTER_VIDMEM",
		0x83de0309: "DEBUG_SET_EXCEPTION_MASK",
		0x83de030c: "DEBUG_READ_ALL_SM_ERROR_STATES",
		0x83de0310: "DEBUG_CLEAR_ALL_SM_ERROR_STATES",
		0x90e60102: "MASTER_GET_VIRTUAL_FUNCTION_ERROR_CONT_INTR_MASK",
		0xcb330101: "SYSTEM_GET_CAPABILITIES",
	} {
		_, got, ok := strings.Cut(ControlName(cmd), "_CTRL_CMD_")
		if !ok || got != want {
			t.Errorf("ControlName(%#x) = %q, want ..._CTRL_CMD_%s", cmd, ControlName(cmd), want)
		}
	}
}

// Every constant Ctrl..., Class... and Esc... of the package is a number that
// the driver's own tables have.
func TestConstantsHaveNames(t *testing.T) {
	fset := token.NewFileSet()
	seen := 0
	for _, file := range []string{"control.go", "class.go", "ioctl.go"} {
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			lit, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			name := spec.Names[0].Name
			v, err := strconv.ParseUint(lit.Value, 0, 32)
			if err != nil {
				return true
			}
			var got string
			switch {
			case strings.HasPrefix(name, "Ctrl"):
				got = ControlName(uint32(v))
			case strings.HasPrefix(name, "Class"):
				got = ClassName(uint32(v))
			case strings.HasPrefix(name, "Esc"):
				got = EscName(uint8(v))
			default:
				return true
			}
			seen++
			if strings.HasPrefix(got, "0x") {
				t.Errorf("%s = %s has no name in the driver's tables", name, got)
			}
			return true
		})
	}
	if seen < 120 {
		t.Errorf("checked only %d constants", seen)
	}
}

func TestControlShort(t *testing.T) {
	for cmd, want := range map[uint32]string{
		CtrlTSGSetTimeslice:  "A06C SET_TIMESLICE",
		CtrlFECSBindV2:       "2080 GR_FECS_BIND_EVTBUF_FOR_UID_V2",
		CtrlEventBufferFlush: "EVENT_BUFFER FLUSH",
		0xcb330101:           "CONF_COMPUTE SYSTEM_GET_CAPABILITIES",
		0x20803401:           "0x20803401", // two meanings: the branch is not known here
		0x12345678:           "0x12345678",
	} {
		if got := ControlShort(cmd); got != want {
			t.Errorf("ControlShort(%#x) = %q, want %q", cmd, got, want)
		}
	}
}

func TestNumberWithSeveralMeaningsHasAllNames(t *testing.T) {
	const want = "NV2080_CTRL_CMD_ECC_GET_VOLATILE_COUNTS|NV2080_CTRL_CMD_ECC_GET_ECI_COUNTERS"
	if got := ControlName(0x20803401); got != want {
		t.Errorf("ControlName = %q, want %q", got, want)
	}
	if got := StatusName(0x8b); got != "NV_ERR_OPERATION_ABORTED|NV_ERR_DMA_XFER_FAILED" {
		t.Errorf("StatusName(0x8b) = %q", got)
	}
}

func TestClassName(t *testing.T) {
	for class, want := range map[uint32]string{
		0x41:   "NV01_ROOT_CLIENT",
		0x79:   "NV01_EVENT_OS_EVENT",
		0x80:   "NV01_DEVICE_0",
		0x2080: "NV20_SUBDEVICE_0",
		0x900e: "MPS_COMPUTE",
		0x9067: "FERMI_CONTEXT_SHARE_A",
		0x90cd: "NV_EVENT_BUFFER",
		0x90ce: "NV01_MEMORY_DEVICELESS",
		0xa06c: "KEPLER_CHANNEL_GROUP_A",
		0xc46f: "TURING_CHANNEL_GPFIFO_A",
		0xc86f: "HOPPER_CHANNEL_GPFIFO_A",
		0xc96f: "BLACKWELL_CHANNEL_GPFIFO_A",
		0xca6f: "BLACKWELL_CHANNEL_GPFIFO_B",
		0xcbc0: "HOPPER_COMPUTE_A",
		0xc8b5: "HOPPER_DMA_COPY_A",
		0xcec0: "BLACKWELL_COMPUTE_B",
		0xc76f: "0xc76f",
		0xcb6f: "0xcb6f",
	} {
		if got := ClassName(class); got != want {
			t.Errorf("ClassName(%#x) = %q, want %q", class, got, want)
		}
	}
}

func TestIsChannelClass(t *testing.T) {
	for class, want := range map[uint32]bool{
		0xc36f: true, 0xc46f: true, 0xc56f: true, 0xc86f: true, 0xc96f: true, 0xca6f: true,
		0xa06c: false, 0xc76f: false, 0x6f: false, 0xc86e: false, 0x1c86f: false, 0xc574: false,
	} {
		if got := IsChannelClass(class); got != want {
			t.Errorf("IsChannelClass(%#x) = %v", class, got)
		}
	}
}

func TestStatusName(t *testing.T) {
	for status, want := range map[uint32]string{
		0x00:       "NV_OK",
		0x0f:       "NV_ERR_GPU_IS_LOST",
		0x1a:       "NV_ERR_INSUFFICIENT_RESOURCES",
		0x1b:       "NV_ERR_INSUFFICIENT_PERMISSIONS",
		0x1f:       "NV_ERR_INVALID_ARGUMENT",
		0x23:       "NV_ERR_INVALID_CLIENT",
		0x31:       "NV_ERR_INVALID_OBJECT",
		0x33:       "NV_ERR_INVALID_OBJECT_HANDLE",
		0x3a:       "NV_ERR_INVALID_PARAM_STRUCT",
		0x56:       "NV_ERR_NOT_SUPPORTED",
		0x57:       "NV_ERR_OBJECT_NOT_FOUND",
		0x65:       "NV_ERR_TIMEOUT",
		0xffff:     "NV_ERR_GENERIC",
		0x10006:    "NV_WARN_NOTHING_TO_DO",
		0x1234:     "0x1234",
		0xffffffff: "0xffffffff",
	} {
		if got := StatusName(status); got != want {
			t.Errorf("StatusName(%#x) = %q, want %q", status, got, want)
		}
	}
}

func TestEngineName(t *testing.T) {
	for engine, want := range map[uint32]string{
		0x00: "null", 0x01: "gr0", 0x08: "gr7", 0x09: "ce0", 0x12: "ce9", 0x34: "ce10", 0x3d: "ce19",
		0x13: "nvdec0", 0x1a: "nvdec7", 0x1b: "nvenc0", 0x1d: "nvenc2", 0x3f: "nvenc3",
		0x26: "sec2", 0x2b: "nvjpeg0", 0x32: "nvjpeg7", 0x33: "ofa0", 0x3e: "ofa1",
		0x40: "decompce0", 0x53: "decompce19", 0x54: "0x54", 0x1000: "0x1000", 0xffffffff: "all",
	} {
		if got := EngineName(engine); got != want {
			t.Errorf("EngineName(%#x) = %q, want %q", engine, got, want)
		}
	}
	names := map[string]uint32{}
	for e := uint32(0); e < MaxEngines; e++ {
		n := EngineName(e)
		if other, ok := names[n]; ok || strings.HasPrefix(n, "0x") {
			t.Errorf("engine %#x is %q, and so is %#x", e, n, other)
		}
		names[n] = e
		if IsGraphicsEngine(e) != strings.HasPrefix(n, "gr") || IsCopyEngine(e) != strings.Contains(n, "ce") {
			t.Errorf("engine %#x, %s: graphics %v, copy %v", e, n, IsGraphicsEngine(e), IsCopyEngine(e))
		}
	}
}

func TestXidName(t *testing.T) {
	for code, want := range map[uint32]string{
		13:  "graphics engine exception",
		31:  "MMU fault",
		39:  "ce0 error",
		79:  "GPU has fallen off the bus",
		84:  "nvdec2 error",
		119: "GSP RPC timeout",
		135: "ce19 error",
		142: "nvenc3 error",
		15:  "unknown Xid 15",
		999: "unknown Xid 999",
	} {
		if got := XidName(code); got != want {
			t.Errorf("XidName(%d) = %q, want %q", code, got, want)
		}
	}
	for _, r := range xidEngines {
		for c := r.first; c <= r.last; c++ {
			if n, ok := xidNames[c]; ok {
				t.Errorf("Xid %d has two names: %q and %s", c, n, r.engine)
			}
		}
	}
}
