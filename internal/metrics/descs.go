package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"tsgtop/internal/sched"
)

var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("tsgtop_"+name, help, labels, nil)
	descs = append(descs, d)
	return d
}

// What is exported. docs/metrics.md explains each.
var (
	dBuild  = desc("build_info", "Version of tsgtop and of the Go that built it.", "version", "goversion")
	dSource = desc("source_info", "What is looked at: LIVE, RECORDING, DEMO or SIMULATED, and of which host.", "source", "host")
	dTime   = desc("source_time_seconds", "Newest instant that the source told of, since the Unix epoch.")

	dGPU       = desc("gpu_info", "A GPU, by the index that nvidia-smi counts.", "gpu", "uuid", "name", "driver")
	dSwitches  = desc("gpu_switches_total", "Context switches: turns begun on the graphics engines.", "gpu")
	dCompeted  = desc("gpu_competed_seconds_total", "Time in which at least two contexts competed.", "gpu")
	dSwitching = desc("gpu_switching_seconds_total", "Of the competed time, that in which no context was resident between two that competed. Over the competed time it is the switch tax.", "gpu")
	dSwitchTax = desc("gpu_switch_tax_ratio", "Switch tax of the last 10 seconds; absent where nothing competed.", "gpu")
	dCompeting = desc("gpu_competing", "TSGs that had a turn in the last second, where at least two had.", "gpu")

	dTSGs      = desc("process_tsgs", "Channel groups (TSGs) that live.", "gpu", "process", "unit")
	dShare     = desc("process_share_ratio", "Share of the competed time of the last 10 seconds; absent where nothing competed or the trace cannot tell.", "gpu", "process", "unit")
	dTurns     = desc("process_turns_total", "Turns on the graphics engine.", "gpu", "process", "unit")
	dResident  = desc("process_resident_competed_seconds_total", "Time resident while others competed. Over tsgtop_gpu_competed_seconds_total it is the share.", "gpu", "process", "unit")
	dResidency = desc("process_residency_seconds", "Lengths of turns while another competed.", "gpu", "process", "unit")
	dWait      = desc("process_wait_seconds", "Times off the engine after a turn that its timeslice or a preempt ended.", "gpu", "process", "unit")
	dFolded    = desc("series_folded_total", "TSGs whose numbers went to process=\"other\", because the limit of series was reached.")
	dLimit     = desc("series_limit", "How many programs have series of their own.")

	dXids         = desc("xids_total", "Xid errors.", "gpu", "xid")
	dCommands     = desc("commands_total", "Commands that came to an end, by their three lamps; refused ones have none.", "op", "step", "ran", "accepted", "changed")
	dLost         = desc("lost_total", "What was seen to be missing, by place.", "where")
	dProbe        = desc("probe_state", "State of a probe: ok, limited, missing or released.", "probe", "gpu", "state")
	dUnattributed = desc("unattributed", "What is there and has no known owner.", "kind")
	dCalls        = desc("rm_calls_per_second", "Resource Manager calls of all processes, over the last second.")
)

// sink gathers metrics. One that cannot be made stands there as its error.
type sink struct{ metrics []prometheus.Metric }

func (s *sink) send(m prometheus.Metric, err error, d *prometheus.Desc) {
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	s.metrics = append(s.metrics, m)
}

func (s *sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...)
	s.send(m, err, d)
}

func (s *sink) counter(d *prometheus.Desc, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, prometheus.CounterValue, v, labels...)
	s.send(m, err, d)
}

func (s *sink) histogram(d *prometheus.Desc, h *sched.HistTotals, labels ...string) {
	buckets := make(map[float64]uint64, len(sched.TotalsBounds))
	var below uint64
	for i, bound := range sched.TotalsBounds {
		below += h.Counts[i]
		buckets[bound] = below
	}
	m, err := prometheus.NewConstHistogram(d, h.N, h.Sum, buckets, labels...)
	s.send(m, err, d)
}
