//go:build linux

package ctxsw

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// isRoot tells whether the driver takes us for an administrator: it asks the
// kernel for CAP_SYS_ADMIN in the machine's own user namespace.
func isRoot() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return os.Geteuid() == 0
	}
	uids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		uids = nil
	}
	return admin(string(status), string(uids))
}

// admin reads it from /proc/self/status and /proc/self/uid_map.
func admin(status, uidMap string) bool {
	// The machine's own user namespace maps all ids onto themselves.
	if f := strings.Fields(uidMap); uidMap != "" && (len(f) != 3 || f[0] != "0" || f[1] != "0" || f[2] != "4294967295") {
		return false
	}
	for line := range strings.Lines(status) {
		if caps, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(caps), 16, 64)
			return err == nil && set&(1<<unix.CAP_SYS_ADMIN) != 0
		}
	}
	return false
}
