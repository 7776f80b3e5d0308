package vmtest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// extractImage turns boot/vmlinuz* under dir into what qemu boots directly, and
// writes the kernel's BTF beside it. Booting an uncompressed vmlinux by PVH
// saves about a second of emulated decompression.
func extractImage(dir, arch string) error {
	found, err := filepath.Glob(filepath.Join(dir, "boot/vmlinuz*"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("want one vmlinuz under %s/boot, got %d", dir, len(found))
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	if arch == "arm64" { // Debian's is a plain Image; its BTF comes from the headers
		return os.WriteFile(filepath.Join(dir, "Image"), b, 0o644)
	}
	image, err := extractVMLinux(b)
	if err != nil {
		return fmt.Errorf("%s: %w", found[0], err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vmlinux"), image, 0o644); err != nil {
		return err
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	sec := f.Section(".BTF")
	if sec == nil {
		return errors.New("the kernel has no BTF")
	}
	btf, err := sec.Data()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "vmlinux.btf"), btf, 0o644)
}

// extractVMLinux finds the compressed payload of a bzImage and gives the ELF
// file in it. It tries each place where a known format's magic stands, because
// the magics are short and occur by accident too.
func extractVMLinux(bz []byte) ([]byte, error) {
	formats := []struct {
		magic  []byte
		expand func([]byte) ([]byte, error)
	}{
		{[]byte{0x28, 0xb5, 0x2f, 0xfd}, expandZstd},
		{[]byte{0x02, 0x21, 0x4c, 0x18}, expandLZ4},
		{[]byte{0xfd, '7', 'z', 'X', 'Z', 0}, expandXZ},
	}
	for _, f := range formats {
		for at := 0; ; at++ {
			i := bytes.Index(bz[at:], f.magic)
			if i < 0 {
				break
			}
			at += i
			out, _ := f.expand(bz[at:])
			if bytes.HasPrefix(out, []byte(elf.ELFMAG)) && len(out) > 1<<20 {
				return out, nil
			}
		}
	}
	return nil, errors.New("no zstd, lz4 or xz payload with a kernel in it")
}

func expandZstd(b []byte) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out, err := io.ReadAll(d) // what follows the frame is an error; what came before counts
	return out, err
}

func expandXZ(b []byte) ([]byte, error) {
	cmd := exec.Command("xz", "-dc", "--single-stream")
	cmd.Stdin = bytes.NewReader(b)
	return cmd.Output()
}

// expandLZ4 reads lz4's legacy format, which kernels use: after the magic,
// blocks of up to 8 MiB, each with its compressed length before it.
func expandLZ4(b []byte) ([]byte, error) {
	var out []byte
	for b = b[4:]; len(b) > 4; {
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if n == 0 || int64(n) > int64(len(b)) {
			break // the size that bzImage appends, or what follows the payload
		}
		var err error
		if out, err = lz4Block(out, b[:n]); err != nil {
			return out, err
		}
		b = b[n:]
	}
	return out, nil
}

var errLZ4 = errors.New("damaged lz4 block")

// lz4Block appends one decompressed block to out. References do not reach
// before the block.
func lz4Block(out, src []byte) ([]byte, error) {
	start := len(out)
	length := func(n int) (int, bool) {
		if n < 15 {
			return n, true
		}
		for len(src) > 0 {
			c := src[0]
			src = src[1:]
			n += int(c)
			if c != 255 {
				return n, true
			}
		}
		return 0, false
	}
	for len(src) > 0 {
		token := src[0]
		src = src[1:]
		lit, ok := length(int(token >> 4))
		if !ok || lit > len(src) {
			return out, errLZ4
		}
		out = append(out, src[:lit]...)
		src = src[lit:]
		if len(src) == 0 {
			return out, nil // the last sequence has no match
		}
		if len(src) < 2 {
			return out, errLZ4
		}
		off := int(binary.LittleEndian.Uint16(src))
		src = src[2:]
		match, ok := length(int(token & 15))
		if !ok || off == 0 || off > len(out)-start {
			return out, errLZ4
		}
		for range match + 4 {
			out = append(out, out[len(out)-off])
		}
	}
	return out, nil
}
