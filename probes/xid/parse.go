package xid

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tsgtop/internal/sched"
)

// ErrNoXid: a line of the kernel log is not about an Xid.
var ErrNoXid = errors.New("not an Xid")

// Parse reads the driver's line about an Xid in the kernel log, in the
// spellings of drivers from 390 to 595:
//
//	NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
//	NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has …
//	NVRM: Xid (PCI:0000:01:00): 45, pid=1234, Ch 00000010
//	NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 13, pid=…, name=…, …
//	NVRM: Xid (0000:01:00): 31, Ch 00000008, engmask 00000101, intr 10000000
//	NVRM: Xid (GPU-8d5d…): 13, …
//
// Time, GPU and From are left to the caller. uuid is set for the form that
// names the GPU by it.
func Parse(line string) (x sched.Xid, uuid string, err error) {
	_, rest, ok := strings.Cut(line, "NVRM: Xid (")
	if !ok {
		return x, "", ErrNoXid
	}
	where, rest, ok := strings.Cut(rest, "):")
	if !ok {
		return x, "", fmt.Errorf("%w: no end of the device's address", ErrNoXid)
	}
	code, rest, _ := strings.Cut(strings.TrimSpace(rest), ",")
	n, err := strconv.ParseUint(strings.TrimSpace(code), 10, 32)
	if err != nil {
		return x, "", fmt.Errorf("%w: code: %w", ErrNoXid, err)
	}
	x.Code = uint32(n)
	device, _, _ := strings.Cut(where, " ")
	if strings.HasPrefix(device, "GPU-") {
		uuid = device
	} else {
		x.PCI = NormalPCI(strings.TrimPrefix(device, "PCI:"))
	}
	x.GPU = sched.Unknown
	x.PID, x.Name, x.Text = process(strings.TrimSpace(rest))
	x.Channel = channel(x.Text)
	return x, uuid, nil
}

// process takes "pid=1234, name=python3, " off the front of a message, where
// it is there. 0 and "": the driver did not know.
func process(message string) (pid int, name, rest string) {
	v, rest, ok := field(message, "pid=")
	if !ok {
		return 0, "", message
	}
	if n, err := strconv.ParseUint(strings.Trim(v, "'\""), 10, 31); err == nil {
		pid = int(n)
	}
	if v, after, ok := field(rest, "name="); ok {
		rest = after
		if v = strings.Trim(v, "'\""); v != "<unknown>" {
			name = v
		}
	}
	return pid, name, rest
}

// field takes "key=value, rest" apart. A value with ", " in it ends there:
// nothing in the line says where it does.
func field(s, key string) (value, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, key)
	if !ok {
		return "", "", false
	}
	value, rest, _ = strings.Cut(s, ", ")
	return strings.TrimSpace(value), strings.TrimSpace(rest), true
}

// channel finds the channel's number in a message. All spellings are hex.
func channel(text string) *int {
	for _, mark := range []string{"Ch ", "Channel ID ", "channel ", "Channel ", "ChID ", "chid "} {
		for s := text; ; {
			i := strings.Index(s, mark)
			if i < 0 {
				break
			}
			// A word of its own, not the end of another.
			ok := i == 0 || s[i-1] == ' ' || s[i-1] == ',' || s[i-1] == '('
			s = s[i+len(mark):]
			if !ok {
				continue
			}
			if n, found := hex(s); found {
				return &n
			}
		}
	}
	return nil
}

// hex reads a number from the front of s that ends with the word: "0x" and up
// to eight hex digits, or eight digits, so that no word is taken for one.
func hex(s string) (int, bool) {
	s, marked := strings.CutPrefix(s, "0x")
	end := 0
	for end < len(s) && isHex(s[end]) {
		end++
	}
	if !marked && end != 8 || end < len(s) && !strings.ContainsRune(", .);\n", rune(s[end])) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:end], 16, 32)
	return int(n), err == nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// NormalPCI gives a PCI address as sched.GPU has it: "0000:01:00.0". Text that
// is no address gives "".
func NormalPCI(s string) string {
	s, function, _ := strings.Cut(strings.ToLower(strings.TrimSpace(s)), ".")
	parts := strings.Split(s, ":")
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != 3 {
		return ""
	}
	var n [4]uint64
	for i, p := range append(parts, function) {
		if p == "" && i == 3 {
			continue // no function: 0
		}
		v, err := strconv.ParseUint(p, 16, 32)
		if err != nil {
			return ""
		}
		n[i] = v
	}
	if n[1] > 0xff || n[2] > 0x1f || n[3] > 7 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3])
}

// logRecord is one record of /dev/kmsg.
type logRecord struct {
	facility int
	text     string
}

// parseRecord reads a record of /dev/kmsg: "priority,sequence,microseconds,
// flags;text", then lines of properties that begin with a blank.
func parseRecord(b []byte) (logRecord, error) {
	head, text, ok := strings.Cut(string(b), ";")
	if !ok {
		return logRecord{}, errors.New("record of the kernel log: no text")
	}
	priority, _, _ := strings.Cut(head, ",")
	p, err := strconv.ParseUint(priority, 10, 31)
	if err != nil {
		return logRecord{}, fmt.Errorf("record of the kernel log: priority: %w", err)
	}
	text, _, _ = strings.Cut(text, "\n")
	return logRecord{facility: int(p >> 3), text: text}, nil
}
