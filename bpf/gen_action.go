package bpf

//go:generate go tool bpf2go -cc clang-14 -cflags "-O2 -g -Wall -Werror -mcpu=v3" -target amd64,arm64 -type action_args -type action_record -type action_op -type action_phase -type tsgtop_target -type tsgtop_result -type tsgtop_identity -type tsgtop_switches -type tsgtop_why -type tsgtop_flag -type tsgtop_known Action action.bpf.c
