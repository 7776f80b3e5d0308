#!/bin/bash
# Measures what `tsgtop protect` does for a latency-critical process (a 1 ms
# kernel about every 10 ms) beside one and then three best-effort processes (30 ms
# kernels back to back), and prints a table. Needs root, an NVIDIA GPU, nvcc, and
# the tsgtop binary ($TSGTOP, or ./tsgtop). Takes about a minute.
#
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
TSGTOP=${TSGTOP:-./tsgtop}
BEFORE=${BEFORE:-5} DURING=${DURING:-8} BE=${BE:-} GPU=${GPU:-0}
export CUDA_VISIBLE_DEVICES=$GPU CUDA_DEVICE_ORDER=PCI_BUS_ID
W=$(mktemp -d)
pids=()
cleanup() { [ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$W"; }
trap cleanup EXIT
trap 'exit 130' INT TERM
[ -x "$TSGTOP" ] || { echo "protect.sh: $TSGTOP is no program: set TSGTOP" >&2; exit 2; }
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
"$NVCC" -O2 -o "$W/lc" "$here/lc.cu" || exit 2

# percentiles LOG FROM_NS TO_NS: p50 p90 p99 of what finished in between, and how many
percentiles() {
	awk -v a="$2" -v b="$3" '$1 >= a && $1 < b {print $2}' "$1" | sort -n |
		awk '{x[NR]=$1} END {if (NR == 0) {print "- - - 0"; exit}
			printf "%.0f %.0f %.0f %d\n", x[int(NR*.5+.999)], x[int(NR*.9+.999)], x[int(NR*.99+.999)], NR}'
}
# rate FROM_NS TO_NS LOG...: kernels a second of all together
rate() {
	local a=$1 b=$2; shift 2
	cat "$@" | awk -v a="$a" -v b="$b" '$1 >= a && $1 < b {n++} END {printf "%.2f\n", n / ((b - a) / 1e9)}'
}
# field NAME N FILE: the N-th number of that name in one line of JSON
field() { grep -o "\"$1\":[0-9]*" "$3" | sed -n "$2p" | cut -d: -f2; }
state() { grep -o "\"$1\":{\"state\":\"[a-z]*\"" "$2" | head -1 | sed 's/.*"\([a-z]*\)"$/\1/'; }

# Kernels are as long as they are on an idle GPU, whoever else runs when they begin.
STEPS_PER_US=$("$W/lc" calibrate) || exit 1
export STEPS_PER_US
now_ns() { date +%s%N; }
printf '%-26s %7s %7s %7s %7s  %9s  %s\n' "LC launch to finish, us" p50 p90 p99 n "BE/s" "lamps"
status=0
for n in ${COUNTS:-1 3}; do
	logs=() bes=()
	"$W/lc" lc 90 1000 10000 "$W/lc$n.log" >"$W/lc$n.out" & lc=$!; pids+=("$lc")
	sleep 1.5 # the context, and clocks that rise
	a0=$(now_ns); sleep "$BEFORE"; a1=$(now_ns)
	read -r a50 a90 a99 k < <(percentiles "$W/lc$n.log" "$a0" "$a1")
	printf '%-26s %7s %7s %7s %7s  %9s\n' "alone, before $n came" "$a50" "$a90" "$a99" "$k" ""
	for i in $(seq "$n"); do
		"$W/lc" be 90 30000 "$W/be$n-$i.log" >/dev/null & pids+=($!); bes+=($!)
		logs+=("$W/be$n-$i.log")
	done
	for _ in $(seq 100); do # until all have begun
		ready=1
		for f in "${logs[@]}"; do [ -s "$f" ] || ready=0; done
		[ $ready = 1 ] && break
		sleep 0.1
	done
	"$TSGTOP" protect "pid:$lc" ${BE:+--be "$BE"} --before "${BEFORE}s" --for "${DURING}s" --yes --json \
		--probe "tail -n 0 -f $W/lc$n.out" >"$W/report$n.json" 2>"$W/err$n"
	code=$?
	if ! [ -s "$W/report$n.json" ]; then echo "protect failed with $code:"; cat "$W/err$n"; exit 1; fi
	slices=$("$TSGTOP" ls --for 200ms --json 2>/dev/null | grep -o '"pid":[0-9]*[^}]*"timeslice_us":[0-9]*' |
		sed 's/"pid":\([0-9]*\).*"timeslice_us":\([0-9]*\)/\1:\2/' | tr '\n' ' ')
	sleep 2
	b0=$(field from_ns 1 "$W/report$n.json") b1=$(field to_ns 1 "$W/report$n.json")
	d0=$(field from_ns 2 "$W/report$n.json") d1=$(field to_ns 2 "$W/report$n.json")
	be_us=$(field be_us 1 "$W/report$n.json")
	read -r p50 p90 p99 k < <(percentiles "$W/lc$n.log" "$b0" "$b1")
	r0=$(rate "$b0" "$b1" "${logs[@]}")
	printf '%-26s %7s %7s %7s %7s  %9s\n' "beside $n" "$p50" "$p90" "$p99" "$k" "$r0"
	read -r q50 q90 q99 k < <(percentiles "$W/lc$n.log" "$d0" "$d1")
	r1=$(rate "$d0" "$d1" "${logs[@]}")
	printf '%-26s %7s %7s %7s %7s  %9s  ran %s, accepted %s, changed %s, helped %s (exit %d)\n' "beside $n, BE at $be_us us" "$q50" "$q90" "$q99" "$k" "$r1" \
		"$(state ran "$W/report$n.json")" "$(state accepted "$W/report$n.json")" "$(state changed "$W/report$n.json")" "$(state helped "$W/report$n.json")" "$code"
	awk -v a="$a99" -v q="$q99" -v r0="$r0" -v r1="$r1" 'BEGIN {printf "%26s p99 is %.2f of alone; BE %+.1f%%\n", "", q / a, 100 * (r1 / r0 - 1)}'
	echo "$(printf '%26s' '') timeslices afterwards (pid:us): $slices"
	left=0
	for p in "${bes[@]}"; do case " $slices" in *" $p:$be_us "*) left=1 ;; esac; done
	[ $left = 0 ] && echo "$(printf '%26s' '') everything is back" || { echo "$(printf '%26s' '') NOT PUT BACK"; status=1; }
	[ -n "${KEEP:-}" ] && cp "$W/report$n.json" "$KEEP/"
	kill "${bes[@]}" "$lc" 2>/dev/null; wait "${bes[@]}" "$lc" 2>/dev/null
	pids=()
done
exit $status
