package recording

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
)

// What is no regular file is refused before anything is read from it; a pipe
// that nobody writes to does not hold the program up.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	if err := unix.Bind(s, &unix.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, says string }{
		{dir, "it is a folder"}, {pipe, "it is a pipe"}, {socket, "opening the recording"}, {"/dev/zero", "it is a device"}, {filepath.Join(dir, "none"), "no such file"},
	} {
		_, openErr := Open(c.path)
		_, playErr := OpenPlayer(c.path, PlayerOptions{})
		for _, err := range []error{openErr, playErr} {
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), c.path) != 1 {
				t.Errorf("%s: %v: want %q, and the path once", c.path, err, c.says)
			}
		}
	}
}

// A file of nothing but zeros, however large it says that it is, is refused by
// its first bytes.
func TestHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zeros")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Skipf("skip: file system: no sparse file of 1 TiB: %v", err)
	}
	f.Close()
	if _, err := OpenPlayer(path, PlayerOptions{}); err == nil || !strings.Contains(err.Error(), "not zstd") {
		t.Errorf("got %v", err)
	}
}

// What the recording cannot be written to is named once, with the reason.
func TestWhereNothingCanBeWritten(t *testing.T) {
	dir := t.TempDir()
	for path, says := range map[string]string{dir: "exists already", filepath.Join(dir, "no", "x"): "no such file", "/proc/x": ""} {
		_, err := Create(path, WriterOptions{})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", path, err)
		}
		if _, ok := err.(*fs.PathError); ok {
			t.Errorf("%s: %v does not say what was tried", path, err)
		}
	}
}

// Every string that any event has is made safe, those that a field was added for
// later too.
func TestEveryStringIsMadeSafe(t *testing.T) {
	const bad = "a\x1b[2J\u202eb\u009b\xff\n"
	var poison func(v reflect.Value)
	poison = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(bad)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			poison(v.Elem())
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			poison(v.Index(0))
			poison(v.Index(1))
		case reflect.Map:
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			poison(k)
			poison(e)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(k, e)
		case reflect.Struct:
			for i := range v.NumField() {
				poison(v.Field(i))
			}
		}
	}
	for _, e := range allTypes {
		v := reflect.New(reflect.TypeOf(e)).Elem()
		poison(v)
		met := 0
		eachString(v, func(string) { met++ })
		given := v.Interface().(sched.Event)
		safeText(t, safeEvent(given))
		eachString(reflect.ValueOf(given), func(s string) {
			if s != bad {
				t.Errorf("%T: the event that was given was changed: %q", e, s)
			}
		})
		kept := 0
		eachString(reflect.ValueOf(safeEvent(given)), func(string) { kept++ })
		if kept != met {
			t.Errorf("%T: %d strings became %d", e, met, kept)
		}
	}
}
