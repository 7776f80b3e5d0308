//go:build linux

package audit

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Who is behind a command, as far as the system tells. None of it is asked of
// the user.
type Who struct {
	UID      int    `json:"uid"`
	User     string `json:"user,omitempty"`
	LoginUID *int64 `json:"login_uid"` // the audit session's, which survives sudo and su; null: not set
	Login    string `json:"login,omitempty"`
	SudoUser string `json:"sudo_user,omitempty"`
	TTY      string `json:"tty,omitempty"`
	// SSHFrom is the address and port that an ssh session comes from, and
	// SSHSource whose word that is: the environment of the sshd child that
	// started the session, which its user could have changed.
	SSHFrom   string `json:"ssh_from,omitempty"`
	SSHSource string `json:"ssh_source,omitempty"`
	Parents   string `json:"parents,omitempty"` // names of the processes above, nearest first
}

// noLoginUID is what the kernel shows where none was set.
const noLoginUID = 1<<32 - 1

// Whoami looks at this process and those above it.
func Whoami() Who {
	return whois("/proc", os.Getpid(), os.Getuid(), os.Getenv)
}

func whois(proc string, pid, uid int, getenv func(string) string) Who {
	w := Who{UID: uid, SudoUser: getenv("SUDO_USER")}
	w.User = nameOf(uid)
	if b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "loginuid")); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n != noLoginUID {
			w.LoginUID, w.Login = &n, nameOf(int(n))
		}
	}
	w.TTY = tty(proc, pid)
	var names []string
	for p, n := pid, 0; p > 1 && n < 32; n++ {
		if w.SSHFrom == "" {
			if from := sshFrom(proc, p); from != "" {
				w.SSHFrom, w.SSHSource = from, fmt.Sprintf("environment of pid %d", p)
			}
		}
		up, name := parent(proc, p)
		if p != pid {
			names = append(names, name)
		}
		p = up
	}
	w.Parents = strings.Join(names, " < ")
	return w
}

func nameOf(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.Username
}

// tty is the terminal of standard input, output or error, or the controlling one.
func tty(proc string, pid int) string {
	for fd := range 3 {
		l, err := os.Readlink(filepath.Join(proc, strconv.Itoa(pid), "fd", strconv.Itoa(fd)))
		if err == nil && (strings.HasPrefix(l, "/dev/pts/") || strings.HasPrefix(l, "/dev/tty")) {
			return l
		}
	}
	f := statFields(proc, pid)
	if len(f) < 5 {
		return ""
	}
	n, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil || n == 0 {
		return ""
	}
	if major, minor := unix.Major(uint64(n)), unix.Minor(uint64(n)); major >= 136 && major <= 143 {
		return fmt.Sprintf("/dev/pts/%d", minor+(major-136)*256)
	}
	return fmt.Sprintf("device %d:%d", unix.Major(uint64(n)), unix.Minor(uint64(n)))
}

// statFields are those of /proc/PID/stat after the name: state first.
func statFields(proc string, pid int) []string {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

func parent(proc string, pid int) (ppid int, name string) {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	if err == nil {
		name = strings.TrimSpace(string(b))
	}
	if f := statFields(proc, pid); len(f) > 1 {
		ppid, _ = strconv.Atoi(f[1])
	}
	return ppid, name
}

// sshFrom is "address port" out of SSH_CONNECTION in a process's environment.
// sudo drops the variable, so those above are asked too.
func sshFrom(proc string, pid int) string {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "environ"))
	if err != nil {
		return ""
	}
	for v := range bytes.SplitSeq(b, []byte{0}) {
		if rest, ok := bytes.CutPrefix(v, []byte("SSH_CONNECTION=")); ok {
			if f := strings.Fields(string(rest)); len(f) >= 2 && len(rest) < 256 {
				return f[0] + " " + f[1]
			}
		}
	}
	return ""
}
