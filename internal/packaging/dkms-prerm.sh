#!/bin/sh
set -e
case $1 in
remove | upgrade | deconfigure) dkms remove -m tsgtop -v "@VERSION@" --all || true ;;
esac
