package vmtest

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"sort"
	"strings"
)

// Initramfs collects the files of an initramfs and writes them in the "newc"
// cpio form that the kernel unpacks.
type Initramfs struct {
	files map[string]file
}

type file struct {
	mode     uint32 // type and permission bits as in stat
	data     []byte
	maj, min uint32 // of a device node
}

// NewInitramfs has /dev with a console node and nothing else.
func NewInitramfs() *Initramfs {
	i := &Initramfs{files: map[string]file{}}
	i.files["dev/console"] = file{mode: 0o020600, maj: 5, min: 1}
	return i
}

// Add puts data at name (no leading slash).
func (i *Initramfs) Add(name string, data []byte, perm uint32) {
	i.files[strings.TrimPrefix(path.Clean(name), "/")] = file{mode: 0o100000 | perm, data: data}
}

// AddFile puts a file of this machine at name.
func (i *Initramfs) AddFile(name, from string, perm uint32) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	i.Add(name, b, perm)
	return nil
}

// Bytes is the archive. Folders are made as their files need them.
func (i *Initramfs) Bytes() []byte {
	all := map[string]file{}
	for name, f := range i.files {
		all[name] = f
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			all[d] = file{mode: 0o040755}
		}
	}
	names := make([]string, 0, len(all))
	for n := range all {
		names = append(names, n)
	}
	sort.Strings(names) // a folder sorts before what is in it
	var out bytes.Buffer
	for ino, n := range names {
		cpioEntry(&out, uint32(ino+1), n, all[n])
	}
	cpioEntry(&out, 0, "TRAILER!!!", file{})
	return out.Bytes()
}

func cpioEntry(out *bytes.Buffer, ino uint32, name string, f file) {
	fmt.Fprintf(out, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		ino, f.mode, 0, 0, 1, 0, len(f.data), 0, 0, f.maj, f.min, len(name)+1, 0)
	out.WriteString(name)
	out.WriteByte(0)
	pad4(out)
	out.Write(f.data)
	pad4(out)
}

func pad4(out *bytes.Buffer) {
	for out.Len()%4 != 0 {
		out.WriteByte(0)
	}
}
