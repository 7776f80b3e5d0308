#!/bin/sh
# Builds the module for the running kernel, and for others as they are installed.
set -e
if [ "$1" = configure ]; then
	if [ -x /usr/lib/dkms/common.postinst ]; then
		/usr/lib/dkms/common.postinst tsgtop "@VERSION@" "" "" "$2"
	else
		dkms add -m tsgtop -v "@VERSION@" || true
		dkms install -m tsgtop -v "@VERSION@" || echo "tsgtop-dkms: the module could not be built for this kernel; tsgtop works without it" >&2
	fi
fi
