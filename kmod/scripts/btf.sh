#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# btf.sh MODULE.ko [BASE.btf]: gives a module BTF and resolves the ids of its
# kfuncs, where the kernel's own build could not ("Skipping BTF generation ...
# due to unavailability of vmlinux"). BASE is raw BTF of the kernel that the
# module is for; by default that of the running one.
set -eu
ko=$1
base=${2:-/sys/kernel/btf/vmlinux}
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "btf.sh: $1" >&2; exit 1; }
has_section() { readelf -SW "$1" | grep -q " $2 "; }

has_section "$ko" '\.BTF' && exit 0 # kbuild did it, ids too
[ -r "$base" ] || fail "$base cannot be read: build on the kernel that the module is for, or give its raw BTF"
command -v pahole >/dev/null || fail "pahole is missing (Debian, Ubuntu: apt install dwarves)"
has_section "$ko" '\.debug_info' || fail "$ko has no debug information: the kernel was configured without CONFIG_DEBUG_INFO"
pahole -J --btf_base="$base" "$ko"
has_section "$ko" '\.BTF' || fail "pahole made no BTF for $ko"
tool=$(mktemp)
trap 'rm -f "$tool"' EXIT
${HOSTCC:-cc} -O2 -Wall -o "$tool" "$here/btfids.c"
"$tool" "$ko" "$base"
