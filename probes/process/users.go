package process

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// users are the names in a passwd file. It is read by ourselves, so that a
// build without cgo gives the same names as one with it, and no name service
// that hangs can stop the screen; users of a directory service show as numbers.
type users struct {
	path string

	mu      sync.Mutex
	names   map[int]string
	changed time.Time // the file's modification time when it was read
	checked time.Time
}

const (
	maxPasswd  = 16 << 20         // bytes
	recheckFor = 10 * time.Second // how long a file's time is trusted
)

// name is the user's name, or empty.
func (u *users) name(uid int) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := time.Now(); u.names == nil || now.Sub(u.checked) > recheckFor {
		u.checked = now
		u.read()
	}
	return u.names[uid]
}

func (u *users) read() {
	st, err := os.Stat(u.path)
	if err != nil || !st.Mode().IsRegular() {
		if u.names == nil {
			u.names = map[int]string{}
		}
		return
	}
	if u.names != nil && st.ModTime().Equal(u.changed) {
		return
	}
	f, err := os.Open(u.path)
	if err != nil {
		return
	}
	defer f.Close()
	u.names, u.changed = parsePasswd(io.LimitReader(f, maxPasswd)), st.ModTime()
}

// parsePasswd reads lines of name:password:uid:…; the first of a uid counts.
func parsePasswd(r io.Reader) map[int]string {
	names := make(map[int]string)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 4)
		if len(parts) < 4 || parts[0] == "" || parts[0][0] == '#' {
			continue
		}
		uid, err := strconv.ParseUint(parts[2], 10, 32)
		if err != nil {
			continue
		}
		if _, again := names[int(uid)]; !again {
			names[int(uid)] = parts[0]
		}
	}
	return names
}
