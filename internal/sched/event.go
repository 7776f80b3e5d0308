package sched

// Event is one observed fact, whoever observed it: a live probe, a recording
// or the simulated GPU. The types in this file, Command and SwitchCounters are
// all there are; a consumer switches on the type. Events of one source arrive
// in one order, though different probes' times can overtake each other by some
// milliseconds.
type Event interface {
	// When is the instant of the fact, or of its end where it has a duration.
	When() Time
}

// SourceInfo says who observes, where. It is the first event of every source,
// and comes again when something in it changes.
type SourceInfo struct {
	Time    Time     `json:"t"`
	Label   string   `json:"label"` // LIVE, RECORDING, DEMO or SIMULATED: shown on the screen
	Host    string   `json:"host"`
	BootID  string   `json:"boot_id,omitempty"`
	Kernel  string   `json:"kernel,omitempty"` // uname -r
	Tool    string   `json:"tool,omitempty"`   // version of tsgtop that observed
	Notes   []string `json:"notes,omitempty"`  // sentences to show, such as "no NVIDIA driver here: this is the built-in recording"
	Started Time     `json:"started,omitempty"`
}

// ProbeStatus says whether one probe works, and if not, why and what would help.
type ProbeStatus struct {
	Time  Time       `json:"t"`
	Probe string     `json:"probe"` // "rm", "ctxsw", "discover", "nvml", "xid", "exit"
	GPU   int        `json:"gpu"`   // for a probe of one GPU; otherwise Unknown
	State ProbeState `json:"state"`
	Rung  string     `json:"rung,omitempty"` // for "rm": the hook in use, e.g. "tp_btf sys_enter/sys_exit"
	What  string     `json:"what,omitempty"` // what it gives, in words
	Why   string     `json:"why,omitempty"`  // why it is limited or missing
	Help  string     `json:"help,omitempty"` // what would help
}

// ProbeState is how well a probe works.
type ProbeState string

// The states of a probe.
const (
	ProbeOK       ProbeState = "ok"
	ProbeLimited  ProbeState = "limited"
	ProbeMissing  ProbeState = "missing"
	ProbeReleased ProbeState = "released" // let go on request (SIGUSR1, a key)
)

// GPU describes one GPU and its runlists. It comes at start and on change.
type GPU struct {
	Time           Time      `json:"t"`
	Index          int       `json:"index"` // as nvidia-smi counts (PCI order)
	ID             uint32    `json:"gpu_id"`
	Minor          int       `json:"minor"`           // /dev/nvidiaN; Unknown
	DeviceInstance int       `json:"device_instance"` // RM's deviceId; Unknown
	PCI            string    `json:"pci,omitempty"`   // domain:bus:slot.function
	UUID           string    `json:"uuid,omitempty"`
	Name           string    `json:"name,omitempty"`
	Driver         string    `json:"driver,omitempty"` // driver version
	Open           *bool     `json:"open,omitempty"`   // open kernel module
	GSP            *bool     `json:"gsp,omitempty"`    // RM runs on the GSP
	MIG            *bool     `json:"mig,omitempty"`
	Persistence    *bool     `json:"persistence,omitempty"`
	MemoryBytes    uint64    `json:"memory_bytes,omitempty"`
	Runlists       []Runlist `json:"runlists,omitempty"` // from NV2080 0x20800179; empty where it is refused
	Why            string    `json:"why,omitempty"`      // what of the above could not be known, and why
}

// Runlist is one of a GPU's runlists and the engines that it feeds.
type Runlist struct {
	ID      int      `json:"id"`
	Engines []uint32 `json:"engines"` // NV2080 engine types; rm.EngineName names them
}

// GPUSample is what NVML says of a GPU at an instant. Nil: not to be had.
type GPUSample struct {
	Time         Time            `json:"t"`
	GPU          int             `json:"gpu"`
	SMPercent    *int            `json:"sm,omitempty"` // NVML's utilisation.gpu, percent
	MemUsed      *uint64         `json:"mem_used,omitempty"`
	MemTotal     *uint64         `json:"mem_total,omitempty"`
	PowerMilliW  *uint64         `json:"power_mw,omitempty"`
	TemperatureC *int            `json:"temp_c,omitempty"`
	ProcessMem   []ProcessMemory `json:"process_mem,omitempty"`
}

// ProcessMemory is the GPU memory of one process, in bytes.
type ProcessMemory struct {
	PID   int    `json:"pid"`
	Bytes uint64 `json:"bytes"`
}

// Process says who a process is. All its strings are untrusted text as the
// process gave it; they go through internal/text before they are shown.
type Process struct {
	Time    Time     `json:"t"`
	PID     int      `json:"pid"`             // in the pid namespace of the probes (the machine's)
	NSPID   int      `json:"nspid,omitempty"` // in its own namespace; 0 where it is the same or not known
	Start   uint64   `json:"start,omitempty"` // field 22 of /proc/PID/stat, clock ticks since boot: with PID it names the process
	Exe     string   `json:"exe,omitempty"`   // target of /proc/PID/exe
	Comm    string   `json:"comm,omitempty"`
	UID     *int     `json:"uid,omitempty"`
	User    string   `json:"user,omitempty"`
	Cgroup  string   `json:"cgroup,omitempty"` // path in the unified hierarchy
	Unit    string   `json:"unit,omitempty"`   // "systemd:x.service", "docker:…", "containerd:…", "k8s:POD", "slurm:JOB"
	Args    []string `json:"args,omitempty"`   // only when asked for: they hold secrets
	Gone    bool     `json:"gone,omitempty"`   // it ended before it could be read
	WhyNull string   `json:"why_null,omitempty"`
}

// ProcessExit: the last thread of a process ended. Not the end of its RM
// clients: those end at the last close of their file.
type ProcessExit struct {
	Time Time `json:"t"`
	PID  int  `json:"pid"`
}

// CallKind is the kind of an RM call, by its ioctl escape.
type CallKind uint8

// The kinds of RM calls.
const (
	CallControl CallKind = iota + 1 // NV_ESC_RM_CONTROL
	CallAlloc                       // NV_ESC_RM_ALLOC, both forms
	CallFree                        // NV_ESC_RM_FREE
	CallDup                         // NV_ESC_RM_DUP_OBJECT
	CallClose                       // last close of an RM file as the probe saw it: its clients end
)

// Where says where a call was answered.
type Where string

// Places where a call can be answered.
const (
	WhereUnknown Where = ""
	WhereGSP     Where = "gsp"
	WhereDriver  Where = "driver"
)

// Call is one RM call of any process, seen going in and coming back.
type Call struct {
	Start  Time     `json:"s"`
	End    Time     `json:"e"`
	PID    int      `json:"pid"`
	TID    int      `json:"tid,omitempty"`
	Comm   string   `json:"comm,omitempty"` // of the calling thread, as the kernel had it: untrusted
	File   uint32   `json:"file,omitempty"` // the open RM file, numbered from 1 as the probes met it; 0: not known
	Kind   CallKind `json:"kind"`
	Number uint32   `json:"n,omitempty"` // control: command; alloc: class
	Client Handle   `json:"c"`
	Parent Handle   `json:"p,omitempty"` // alloc, dup, free: parent
	Object Handle   `json:"o"`           // alloc: the handle that RM gave
	Status uint32   `json:"st,omitempty"`
	Errno  int      `json:"errno,omitempty"` // of the ioctl itself, positive; the status is then not valid
	Where  Where    `json:"where,omitempty"`
	RPC    int64    `json:"rpc_ns,omitempty"` // time in the RPC to the GSP, where a probe saw it
	// Params: decoded for the calls that shape scheduling; nil for others.
	Params *Params `json:"params,omitempty"`
	// Command: id of our own command that made this call; empty for others'.
	Command string `json:"cmd,omitempty"`
}

// Params are the parameters of calls that shape scheduling, as they were after
// the call. Each is nil where the call has none, or where reading it faulted.
type Params struct {
	Engine         *uint32 `json:"engine,omitempty"`     // NV2080 engine type: TSG or channel alloc
	Context        *uint32 `json:"context,omitempty"`    // context id of a channel, as FECS reports it
	TSGNumber      *uint32 `json:"tsg,omitempty"`        // hardware TSG number: GET_INFO
	Timeslice      *uint64 `json:"us,omitempty"`         // microseconds: SET/GET_TIMESLICE
	Interleave     *uint32 `json:"level,omitempty"`      // 0 low, 1 medium, 2 high
	Wait           *bool   `json:"wait,omitempty"`       // PREEMPT: bWait
	TimeoutUS      *uint32 `json:"timeout_us,omitempty"` // PREEMPT: manual timeout
	Enable         *bool   `json:"enable,omitempty"`     // GPFIFO_SCHEDULE
	SkipSubmit     *bool   `json:"skip_submit,omitempty"`
	Immediate      *bool   `json:"immediate,omitempty"` // STOP_CHANNEL
	Force          *bool   `json:"force,omitempty"`     // RESTART_RUNLIST
	Runlist        *uint32 `json:"runlist,omitempty"`   // from a work submit token
	ChID           *uint32 `json:"chid,omitempty"`      // channel number in the runlist, from a work submit token
	DeviceInstance *uint32 `json:"device,omitempty"`    // class 0x80: RM's deviceId
	SubDevice      *uint32 `json:"subdevice,omitempty"`
	SrcClient      *Handle `json:"src_client,omitempty"` // dup
	SrcObject      *Handle `json:"src_object,omitempty"`
	ProcessID      *uint32 `json:"process,omitempty"` // class 0x41: processID, where given
	Faulted        bool    `json:"faulted,omitempty"` // parameters could not be read
}

// CallBatch is many calls in the order of their ends.
type CallBatch struct {
	Calls []Call `json:"calls"`
}

// CallCounts are the calls that were only counted in the kernel since the last
// CallCounts: those that do not shape scheduling, while nobody looks at them.
type CallCounts struct {
	Time   Time        `json:"t"`
	Counts []CallCount `json:"counts"`
}

// CallCount counts one sort of call.
type CallCount struct {
	Kind   CallKind `json:"kind"`
	Number uint32   `json:"n"`
	N      uint64   `json:"count"`
	Failed uint64   `json:"failed,omitempty"` // of N: with a status other than 0
	NS     uint64   `json:"ns"`               // total duration
}

// Inventory is the result of a scan for what existed already: clients, TSGs
// and channels, read through borrowed descriptors. Start and End are stamped
// around the scan, because a call that overlaps it can have changed any key;
// such keys are scanned again, and the state prefers what the stream says.
type Inventory struct {
	Start    Time           `json:"s"`
	End      Time           `json:"e"`
	Complete bool           `json:"complete,omitempty"` // all of the machine's clients were looked at: what is not here is gone
	Clients  []FoundClient  `json:"clients,omitempty"`
	TSGs     []FoundTSG     `json:"tsgs,omitempty"`
	Channels []FoundChannel `json:"channels,omitempty"`
	// Gone are clients that were looked for and do not exist (any more). Of each
	// client in Clients all TSGs and channels are here, unless Partial.
	Gone    []Handle `json:"gone,omitempty"`
	Partial bool     `json:"partial,omitempty"` // objects of a client were left out: too many, or it changed too fast
	// What is there but could not be attributed (kernel clients, refused processes).
	UnattributedClients  int    `json:"unattributed_clients,omitempty"`
	UnattributedChannels int    `json:"unattributed_channels,omitempty"`
	Why                  string `json:"why,omitempty"`
	PerProcessNS         int64  `json:"per_process_ns,omitempty"` // mean time that one process took
}

// FoundClient is an RM client found by a scan and the process whose file owns it.
type FoundClient struct {
	Client Handle `json:"c"`
	PID    int    `json:"pid"`            // lowest pid that holds the file
	PIDs   []int  `json:"pids,omitempty"` // all that hold it (forked children share it)
	FD     int    `json:"fd"`             // descriptor number in PID
	GPU    int    `json:"gpu"`
	MPS    bool   `json:"mps,omitempty"`  // it holds an object of class 0x900e, or the process is an MPS server
	File   uint32 `json:"file,omitempty"` // in a Preamble: the client's RM file as Call.File numbers it; a scan leaves it 0
}

// FoundTSG is a TSG found by a scan.
type FoundTSG struct {
	Object
	Device    Handle   `json:"device"`
	GPU       int      `json:"gpu"`                // Unknown where it could not be told
	Runlist   int      `json:"runlist"`            // Unknown
	Number    *uint32  `json:"tsg,omitempty"`      // hardware TSG number
	UniqueID  *uint32  `json:"unique,omitempty"`   // never-reused id, 0x20801123
	Contexts  []uint32 `json:"contexts,omitempty"` // never-reused context ids of its channels, 0x20801123
	Engine    *uint32  `json:"engine,omitempty"`
	Timeslice *uint64  `json:"us,omitempty"` // as RM's own copy says, microseconds
	PID       int      `json:"pid"`

	// What a scan leaves empty and a Preamble tells: where Timeslice is known
	// from (empty: read), the interleave level that was seen set, whether it was
	// seen scheduled, and when it was made.
	TimesliceFrom ValueFrom `json:"us_from,omitempty"`
	Interleave    *uint32   `json:"level,omitempty"`
	Scheduled     *bool     `json:"scheduled,omitempty"`
	Created       Time      `json:"created,omitempty"`
}

// FoundChannel is a channel found by a scan.
type FoundChannel struct {
	Object
	TSG     Handle  `json:"tsg"`
	Class   uint32  `json:"class"`
	Context *uint32 `json:"context,omitempty"`
	Runlist *uint32 `json:"runlist,omitempty"`
	ChID    *uint32 `json:"chid,omitempty"`
}

// Trace record tags that a release driver gives to user space.
const (
	TagStart uint8 = 6 // the context became resident on the engine
	TagEnd   uint8 = 7 // the context was saved
)

// TraceRecord is one record of the GPU's context-switch trace (FECS).
type TraceRecord struct {
	Time    Time   // GPU time, wall-clock epoch
	Context uint32 // never-reused id of the channel by which its TSG shows
	PID     uint32 // as the driver reports it: the owner of the channel, of the machine's pid namespace
	Gap     uint32 // records known to be missing right before this one
	Tag     uint8
	GI, CI  uint8 // MIG instance ids; 0 without MIG
}

// TraceBatch is a run of records of one GPU's graphics/compute engine, in
// their order. An empty batch says: read up to Time, nothing switched.
type TraceBatch struct {
	Time    Time // the trace has been read up to here
	GPU     int
	Records []TraceRecord
}

// Loss holds counters since start of what was seen to be missing.
type Loss struct {
	Time      Time   `json:"t"`
	Ring      uint64 `json:"ring"`      // eBPF ring was full
	Queue     uint64 `json:"queue"`     // queue between probes and state was full
	Trace     uint64 `json:"trace"`     // gaps in the trace's sequence numbers
	Overtaken uint64 `json:"overtaken"` // trace records overwritten while they were read
	Faults    uint64 `json:"faults"`    // reads of a caller's memory that faulted in the eBPF program
	Compat    uint64 `json:"compat"`    // calls through the 32-bit entry, counted only
	Unmatched uint64 `json:"unmatched"` // call ends without a beginning, or the reverse
	Malformed uint64 `json:"malformed"` // records that could not be decoded
}

// Xid is one Xid error of the driver.
type Xid struct {
	Time    Time   `json:"t"`
	GPU     int    `json:"gpu"`
	PCI     string `json:"pci,omitempty"`
	Code    uint32 `json:"code"`
	PID     int    `json:"pid,omitempty"`
	Name    string `json:"name,omitempty"` // process name in the message: untrusted
	Channel *int   `json:"channel,omitempty"`
	Text    string `json:"text,omitempty"` // the driver's message: untrusted
	From    string `json:"from"`           // "tracepoint" or "kernel log"
}

// ClockTie is one simultaneous reading of the clocks, and the error bound.
type ClockTie struct {
	Time      Time  `json:"t"`      // CLOCK_REALTIME, ns
	Monotonic int64 `json:"mono"`   // CLOCK_MONOTONIC, ns
	Raw       int64 `json:"raw"`    // CLOCK_MONOTONIC_RAW, ns
	GPU       int   `json:"gpu"`    // Unknown where only the CPU's clocks were read
	GPUTime   int64 `json:"gpu_ns"` // the GPU's PTIMER, ns
	ErrorNS   int64 `json:"err_ns"` // half the width of the reading
}

// LifecycleKind is what happened to a TSG.
type LifecycleKind string

// What can happen to a TSG or its runlist.
const (
	TSGCreated       LifecycleKind = "tsg-created"
	TSGScheduled     LifecycleKind = "tsg-scheduled"
	TSGIdled         LifecycleKind = "tsg-idled"
	TSGDestroyed     LifecycleKind = "tsg-destroyed"
	RunlistRestarted LifecycleKind = "runlist-restarted"
	RunlistStopped   LifecycleKind = "channel-stopped"
	TimesliceSet     LifecycleKind = "timeslice-set"
	InterleaveSet    LifecycleKind = "interleave-set"
	TSGPreempted     LifecycleKind = "tsg-preempted"
)

// Lifecycle is a fact about a TSG that the state derived from calls. It is
// derived again on replay, so State.Apply ignores it when it is fed in.
type Lifecycle struct {
	Time    Time          `json:"t"`
	Kind    LifecycleKind `json:"kind"`
	Gen     uint64        `json:"gen,omitempty"` // of the TSG, see TSGView
	ID      TSGID         `json:"id"`
	Object  Object        `json:"tsg"`
	PID     int           `json:"pid"`
	Value   *uint64       `json:"value,omitempty"` // timeslice in microseconds, or interleave level
	Status  uint32        `json:"st,omitempty"`
	Command string        `json:"cmd,omitempty"`
}

// When implementations.
func (e SourceInfo) When() Time  { return e.Time }
func (e ProbeStatus) When() Time { return e.Time }
func (e GPU) When() Time         { return e.Time }
func (e GPUSample) When() Time   { return e.Time }
func (e Process) When() Time     { return e.Time }
func (e ProcessExit) When() Time { return e.Time }
func (e Call) When() Time        { return e.End }
func (e CallCounts) When() Time  { return e.Time }
func (e Inventory) When() Time   { return e.End }
func (e TraceBatch) When() Time  { return e.Time }
func (e Loss) When() Time        { return e.Time }
func (e Xid) When() Time         { return e.Time }
func (e ClockTie) When() Time    { return e.Time }
func (e Lifecycle) When() Time   { return e.Time }
func (e Command) When() Time     { return e.Time }

// When is the end of the batch's last call.
func (e CallBatch) When() Time {
	if len(e.Calls) == 0 {
		return 0
	}
	return e.Calls[len(e.Calls)-1].End
}
