package rmcalls

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tsgtop/internal/rm"
)

// program32 is a program of its own that opens the stand-in and makes one RM
// call on it, both through the 32-bit entry (int 0x80).
func program32() []byte {
	const base, head = 0x400000, 64 + 56
	var code bytes.Buffer
	le := binary.LittleEndian
	imm := func(op byte, v uint32) { code.WriteByte(op); code.Write(le.AppendUint32(nil, v)) }
	const length = 47 // of the instructions
	path, arg := uint32(base+head+length), uint32(base+head+length+len(standIn)+1)
	imm(0xb8, 5)                               // mov eax, open
	imm(0xbb, path)                            // mov ebx
	imm(0xb9, 2)                               // mov ecx, O_RDWR
	code.Write([]byte{0x31, 0xd2, 0xcd, 0x80}) // xor edx, edx; int 0x80
	code.Write([]byte{0x89, 0xc3})             // mov ebx, eax
	imm(0xb8, 54)                              // mov eax, ioctl
	imm(0xb9, rm.Ioctl(rm.EscControl, 32))     // mov ecx
	imm(0xba, arg)                             // mov edx
	code.Write([]byte{0xcd, 0x80})             // int 0x80
	imm(0xb8, 1)                               // mov eax, exit
	code.Write([]byte{0x31, 0xdb, 0xcd, 0x80}) // xor ebx, ebx; int 0x80
	code.WriteString(standIn + "\x00")
	code.Write(make([]byte, 32))

	size := uint64(head + code.Len())
	elf := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	elf = le.AppendUint16(elf, 2)  // executable
	elf = le.AppendUint16(elf, 62) // x86-64
	elf = le.AppendUint32(elf, 1)
	elf = le.AppendUint64(elf, base+head) // entry
	elf = le.AppendUint64(elf, 64)        // program headers
	elf = le.AppendUint64(elf, 0)
	elf = le.AppendUint32(elf, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		elf = le.AppendUint16(elf, v)
	}
	elf = le.AppendUint32(elf, 1) // load
	elf = le.AppendUint32(elf, 7) // read, write, execute
	for _, v := range []uint64{0, base, base, size, size, 4096} {
		elf = le.AppendUint64(elf, v)
	}
	return append(elf, code.Bytes()...)
}

// TestCompatEntry: a call through the 32-bit entry is counted, or the status
// says that such calls are not seen.
func TestCompatEntry(t *testing.T) { eachRung(t, testCompatEntry) }

func testCompatEntry(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	got := collect(t, p)
	got.mu.Lock()
	got.all = true
	got.mu.Unlock()
	path := filepath.Join(t.TempDir(), "call32")
	if err := os.WriteFile(path, program32(), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSEGV {
		t.Skip("skip: needs CONFIG_IA32_EMULATION: int 0x80 is not served here")
	}
	if err != nil {
		t.Fatalf("running a program that uses the 32-bit entry: %v", err)
	}
	for _, c := range got.take() {
		if c.PID == cmd.Process.Pid && c.Client != 0 {
			t.Errorf("decoded %+v", c)
		}
	}
	if rung == RungTPBTF {
		if got.loss.Compat != 1 {
			t.Errorf("losses %+v, want one call through the 32-bit entry", got.loss)
		}
		return
	}
	if why := p.Status().Why; !strings.Contains(why, "32-bit") {
		t.Errorf("status %q does not say that 32-bit programs are not seen", why)
	}
}
