package config

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ada is somebody who is not root, with a home that they own.
func ada(t *testing.T) (Operator, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: files of several owners")
	}
	// Not t.TempDir: the way to it is closed to others.
	home, err := os.MkdirTemp("/tmp", "tsgtop-config-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	o := Operator{UID: 54321, GID: 54321, Home: home, Other: true}
	for _, d := range []string{"", ".config", ".config/tsgtop", ".config/tsgtop/themes"} {
		d = filepath.Join(home, d)
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		own(t, d, o.UID)
	}
	return o, filepath.Join(home, ".config/tsgtop/config.toml")
}

func own(t *testing.T, path string, uid int) {
	t.Helper()
	if err := os.Lchown(path, uid, uid); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string, uid int, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	own(t, path, uid)
}

func TestOperatorsFileHasTheLastWord(t *testing.T) {
	o, file := ada(t)
	system := rootsDir(t) + "/config.toml"
	write(t, system, "theme = \"light\"\nfps = 5\ncontrol = true\n", 0, 0o644)
	write(t, file, "fps = 2\n", o.UID, 0o600)
	c, err := Loader{System: system, Operator: o, Known: known}.Load()
	if err != nil {
		t.Fatal(err)
	}
	if c.Theme != "light" || *c.FPS != 2 || c.Control == nil || !*c.Control || c.From("fps") != file || c.From("control") != system {
		t.Errorf("%+v", c)
	}
}

// rootsDir is a folder that root alone can have written in, all the way down.
func rootsDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("/root", "tsgtop-config-")
	if err != nil {
		t.Skipf("skip: needs a folder of root's own: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(d) })
	if f, distrust, err := openRoots(d + "/x"); distrust != "" || f != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Skipf("skip: needs a folder of root's own: %s %v", distrust, err)
	}
	return d
}

func TestWhatOthersCanWriteIsNotRoots(t *testing.T) {
	o, _ := ada(t)
	for name, make := range map[string]func(dir string) string{
		"file of another": func(d string) string { write(t, d+"/f", "control = true\n", o.UID, 0o600); return d + "/f" },
		"group may write": func(d string) string { write(t, d+"/f", "control = true\n", 0, 0o664); return d + "/f" },
		"all may write":   func(d string) string { write(t, d+"/f", "control = true\n", 0, 0o646); return d + "/f" },
		"folder of another": func(d string) string {
			write(t, d+"/f", "control = true\n", 0, 0o644)
			own(t, d, o.UID)
			return d + "/f"
		},
		"folder all may write": func(d string) string {
			write(t, d+"/f", "control = true\n", 0, 0o644)
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
			return d + "/f"
		},
		"link": func(d string) string {
			write(t, d+"/g", "control = true\n", 0, 0o644)
			if err := os.Symlink(d+"/g", d+"/f"); err != nil {
				t.Fatal(err)
			}
			return d + "/f"
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := make(rootsDir(t))
			// Root in person: it can open all of these.
			for _, l := range []Loader{{System: file}, {File: file}} {
				c, err := l.Load()
				if err == nil {
					t.Errorf("control was taken from it: %+v", c)
				} else if strings.Contains(err.Error(), "control = true") {
					t.Errorf("the error quotes the file: %v", err)
				}
			}
		})
	}
}

func TestFileThatIsRootsCountsWhenAskedFor(t *testing.T) {
	o, _ := ada(t)
	file := rootsDir(t) + "/f.toml"
	write(t, file, "control = true\naudit = \"/a\"\n", 0, 0o600)
	c, err := Loader{File: file, Operator: o}.Load()
	if err != nil || c.Control == nil || c.Audit != "/a" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := (Loader{File: file + "x", Operator: o}).Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestSecretsStayShut: what the operator may not read is not read for them,
// however it is put where their configuration should be.
func TestSecretsStayShut(t *testing.T) {
	o, file := ada(t)
	shut := filepath.Join(rootsDir(t), "shadow")
	write(t, shut, "theme = \""+secret+"\"\n"+secret+"\n", 0, 0o600)
	for name, put := range map[string]func(){
		"link": func() {
			if err := os.Symlink(shut, file); err != nil {
				t.Fatal(err)
			}
		},
		"hard link": func() {
			_ = os.Remove(file)
			write(t, file, "theme = \""+secret+"\"\n"+secret+"\n", 0, 0o600) // as a hard link to it would look
		},
		"file of a third person": func() { write(t, file, secret+"\n", 54322, 0o644) },
		"folder": func() {
			if err := os.Mkdir(file, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"pipe": func() {
			if err := unix.Mkfifo(file, 0o644); err != nil {
				t.Fatal(err)
			}
			own(t, file, o.UID)
		},
		"huge": func() { write(t, file, strings.Repeat("#"+secret+"\n", 10000), o.UID, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
			put()
			for _, l := range []Loader{{Operator: o}, {Operator: o, File: file}} {
				done := make(chan error, 1)
				go func() { _, err := l.Load(); done <- err }()
				select {
				case err := <-done:
					if err == nil {
						t.Error("it was read")
					} else if strings.Contains(err.Error(), secret) {
						t.Errorf("the error quotes it: %v", err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("reading it blocks")
				}
			}
		})
	}
	// The secret itself, by --config: root could read it, the operator learns nothing.
	if _, err := (Loader{Operator: o, File: shut}).Load(); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}

func TestDoTakesTheRightsOfOneThreadOnly(t *testing.T) {
	o, _ := ada(t)
	shut := filepath.Join(t.TempDir(), "f")
	write(t, shut, "x", 0, 0o600)
	for range 20 {
		err := o.Do(func() error {
			_, err := os.ReadFile(shut)
			return err
		})
		if !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("with the operator's rights: %v", err)
		}
		if _, err := os.ReadFile(shut); err != nil {
			t.Fatalf("afterwards, with our own: %v", err)
		}
	}
	if err := o.Do(func() error { panic("torn") }); err == nil || !strings.Contains(err.Error(), "torn") {
		t.Errorf("a panic: %v", err)
	}
}

func TestThemesAreOpenedAsTheOperator(t *testing.T) {
	o, file := ada(t)
	dir := filepath.Join(filepath.Dir(file), "themes")
	write(t, dir+"/mine.toml", "mine", o.UID, 0o600)
	write(t, dir+"/shut.toml", secret, 0, 0o600)
	if err := unix.Mkfifo(dir+"/pipe.toml", 0o644); err != nil {
		t.Fatal(err)
	}
	read := map[string]error{}
	err := Loader{Operator: o}.Themes(func(fsys fs.FS) error {
		names, err := fs.Glob(fsys, "*.toml")
		if err != nil {
			return err
		}
		for _, n := range names {
			_, read[n] = fs.ReadFile(fsys, n)
		}
		return nil
	})
	if err != nil || len(read) != 3 || read["mine.toml"] != nil || read["pipe.toml"] == nil || !errors.Is(read["shut.toml"], fs.ErrPermission) {
		t.Errorf("%v, %v", read, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := (Loader{Operator: o}).Themes(func(fs.FS) error { return errors.New("called") }); err != nil {
		t.Errorf("without a folder: %v", err)
	}
}

func TestNothingThereIsNoError(t *testing.T) {
	c, err := Loader{System: "/nonexistent/config.toml", Operator: Operator{UID: os.Geteuid(), Home: "/nonexistent"}}.Load()
	if err != nil || c == nil || len(c.Flags()) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhoOperates(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	lookup := func(id string) (*user.User, error) {
		if id == "54321" {
			return &user.User{Uid: id, Gid: "54322", Username: "ada", HomeDir: "/home/ada"}, nil
		}
		return nil, user.UnknownUserIdError(1)
	}
	for _, tc := range []struct {
		name  string
		euid  int
		env   map[string]string
		dir   string
		other bool
		fails bool
	}{
		{"somebody", 1000, map[string]string{"HOME": "/home/bob"}, "/home/bob/.config/tsgtop", false, false},
		{"somebody with a folder", 1000, map[string]string{"HOME": "/home/bob", "XDG_CONFIG_HOME": "/x"}, "/x/tsgtop", false, false},
		{"a relative folder does not count", 1000, map[string]string{"HOME": "/home/bob", "XDG_CONFIG_HOME": "x"}, "/home/bob/.config/tsgtop", false, false},
		{"no home", 1000, nil, "", false, false},
		{"somebody who pretends to sudo", 1000, map[string]string{"HOME": "/home/bob", "SUDO_UID": "54321"}, "/home/bob/.config/tsgtop", false, false},
		{"root", 0, map[string]string{"HOME": "/root"}, "/root/.config/tsgtop", false, false},
		{"root by sudo of root", 0, map[string]string{"HOME": "/root", "SUDO_UID": "0"}, "/root/.config/tsgtop", false, false},
		{"sudo", 0, map[string]string{"HOME": "/root", "XDG_CONFIG_HOME": "/root/.config", "SUDO_UID": "54321"}, "/home/ada/.config/tsgtop", true, false},
		{"sudo of nobody known", 0, map[string]string{"SUDO_UID": "5"}, "", false, true},
	} {
		o, err := whoOperates(tc.euid, env(tc.env), lookup)
		if (err != nil) != tc.fails || o.Dir() != tc.dir || o.Other != tc.other {
			t.Errorf("%s: %+v (%s), %v", tc.name, o, o.Dir(), err)
		}
	}
}
