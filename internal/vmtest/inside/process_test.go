//go:build vmtest

package inside

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asTool makes the test binary the product in the pid namespace that it is started in.
const asTool = "VMTEST_TOOL"

// TestMain lets the test binary be a CUDA process too.
func TestMain(m *testing.M) {
	if os.Getenv(asTool) != "" {
		err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
		if err == nil {
			err = syscall.Mount("proc", "/proc", "proc", 0, "")
		}
		if err == nil {
			err = syscall.Exec("/tsgtop", append([]string{"tsgtop"}, os.Args[1:]...), os.Environ())
		}
		fmt.Println("error", err)
		os.Exit(99)
	}
	if gpu := os.Getenv("VMTEST_CUDA_GPU"); gpu != "" {
		if err := beCUDA(gpu); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// told is what a CUDA process tells of itself.
type told struct {
	PID                       int
	Client, Device, Subdevice uint32
	TSG                       uint32
	CopyTSGs                  []uint32
	Channels, Contexts        []uint32
	CtlFD                     int
}

// beCUDA holds what a CUDA process holds, and makes the calls that it is told to,
// one a line: "control OBJECT CMD HEXPARAMS", "xfer …" (the same, wrapped),
// "free OBJECT", "exit". It answers with "STATUS HEXPARAMS".
func beCUDA(gpu string) error {
	n, err := strconv.Atoi(gpu)
	if err != nil {
		return err
	}
	c, err := newCUDA(n)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(told{os.Getpid(), c.client, c.device, c.subdevice, c.tsg, c.copyTSGs, c.channels, c.contexts, int(c.ctl.f.Fd())}); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var verb, hex string
		var object, cmd uint32
		fmt.Sscanf(in.Text(), "%s %x %x %s", &verb, &object, &cmd, &hex)
		params := make([]byte, len(hex)/2)
		fmt.Sscanf(hex, "%x", &params)
		switch verb {
		case "control":
			st, err := c.ctl.control(c.client, object, cmd, params)
			fmt.Printf("%x %v %x\n", st, err, params)
		case "xfer":
			st, err := c.ctl.controlXfer(c.client, object, cmd, params)
			fmt.Printf("%x %v %x\n", st, err, params)
		case "alloc": // a TSG on a copy engine, by the short form
			p := make([]byte, 0x14)
			le.PutUint32(p[0xc:], 10)
			h, st, err := c.ctl.alloc(c.client, c.device, 0, 0xa06c, p, false)
			fmt.Printf("%x %v %x\n", st, err, u32s(h))
		case "free":
			st, err := c.ctl.free(c.client, object)
			fmt.Printf("%x %v \n", st, err)
		case "exit":
			return nil
		default:
			return fmt.Errorf("what is %q?", in.Text())
		}
	}
	return nil
}

// controlXfer sends a control through the driver's wrapper, as libraries do.
func (c ctlFile) controlXfer(client, object, cmd uint32, params []byte) (uint32, error) {
	p := heap(len(params))
	copy(p, params)
	arg := heap(32)
	le.PutUint32(arg[0:], client)
	le.PutUint32(arg[4:], object)
	le.PutUint32(arg[8:], cmd)
	le.PutUint64(arg[0x10:], address(p))
	le.PutUint32(arg[0x18:], uint32(len(p)))
	wrap := heap(16)
	le.PutUint32(wrap[0:], escControl)
	le.PutUint32(wrap[4:], 32)
	le.PutUint64(wrap[8:], address(arg))
	err := ioctl(c.f.Fd(), escXfer, 16, wrap)
	copy(params, p)
	return le.Uint32(arg[0x1c:]), err
}

// process is a running CUDA process.
type process struct {
	told
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startProcess starts one on a GPU. attr may set its user or its namespaces.
func startProcess(t *testing.T, gpu int, attr *syscall.SysProcAttr) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("VMTEST_CUDA_GPU=%d", gpu))
	p.cmd.SysProcAttr = attr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	p.out = bufio.NewScanner(out)
	if !p.out.Scan() {
		t.Fatal("the CUDA process said nothing")
	}
	if err := json.Unmarshal(p.out.Bytes(), &p.told); err != nil {
		t.Fatalf("the CUDA process: %s", p.out.Text())
	}
	p.PID = p.cmd.Process.Pid // as this namespace knows it
	return p
}

// ask has the process make one call, and gives the status and the parameters.
func (p *process) ask(format string, args ...any) (uint32, []byte) {
	p.t.Helper()
	fmt.Fprintf(p.in, format+"\n", args...)
	if !p.out.Scan() {
		p.t.Fatalf("the CUDA process ended at %q", fmt.Sprintf(format, args...))
	}
	f := strings.SplitN(p.out.Text(), " ", 3)
	if len(f) != 3 || f[1] != "<nil>" {
		p.t.Fatalf("the CUDA process at %q: %s", fmt.Sprintf(format, args...), p.out.Text())
	}
	st, err := strconv.ParseUint(f[0], 16, 32)
	if err != nil {
		p.t.Fatal(err)
	}
	params := make([]byte, len(f[2])/2)
	fmt.Sscanf(f[2], "%x", &params)
	return uint32(st), params
}

func (p *process) end() {
	p.in.Close()
	p.cmd.Wait()
}
