package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fakeSteerer notes the marks that it is given.
type fakeSteerer struct {
	role, lifted map[uint64]string
	fail         error
	log          []string
}

func (f *fakeSteerer) Mark(gen uint64, role string) error {
	f.log = append(f.log, fmt.Sprintf("mark %d %q", gen, role))
	if f.role == nil {
		f.role = map[uint64]string{}
	}
	if f.fail == nil {
		f.role[gen] = role
	}
	return f.fail
}

func (f *fakeSteerer) Role(gen uint64) (string, string) { return f.role[gen], f.lifted[gen] }

func (f *fakeSteerer) Explain(gen uint64, role string) string {
	return fmt.Sprintf("what %q does to %d", role, gen)
}

// B asks, gives the role on yes, and takes it away when it is pressed again.
func TestRolesGoOnAndOff(t *testing.T) {
	s := &fakeSteerer{}
	h := start(t, 120, 40, oneGPU, func(o *Options) { o.Controller, o.Roles = &fakeController{armed: true}, s })
	if !strings.Contains(h.plain(), "ROLE") {
		t.Errorf("no column of roles:\n%s", h.plain())
	}
	h.press("B")
	if !strings.Contains(h.plain(), "Make it best-effort?") || !strings.Contains(h.plain(), `what "be" does to 2`) || len(s.log) != 0 {
		t.Errorf("%q\n%s", s.log, h.plain())
	}
	h.press("enter")
	if len(s.log) != 0 {
		t.Errorf("cancel has the focus, and yet %q", s.log)
	}
	h.press("B", "tab", "enter")
	if !slices.Equal(s.log, []string{`mark 2 "be"`}) || !strings.Contains(h.plain(), "is best-effort") || !strings.Contains(h.plain(), " BE ") {
		t.Errorf("%q\n%s", s.log, h.plain())
	}
	s.lifted = map[uint64]string{2: "it starved"}
	h.press("ctrl+l")
	if !strings.Contains(h.plain(), "(BE)") {
		t.Errorf("lifted:\n%s", h.plain())
	}
	h.press("L", "tab", "enter", "L")
	if s.role[2] != "lc" || !strings.Contains(h.plain(), "Take its role away?") {
		t.Errorf("%q\n%s", s.log, h.plain())
	}
	s.fail = errors.New("control is not armed")
	h.press("tab", "enter")
	if !strings.Contains(h.plain(), "the role was not given: control is not armed") {
		t.Errorf("%s", h.plain())
	}
}

// Without somebody who keeps roles, or without control, the keys say why.
func TestRolesNeedControl(t *testing.T) {
	h := start(t, 120, 40, oneGPU, func(o *Options) { o.Controller = &fakeController{armed: true} }).press("B")
	if !strings.Contains(h.plain(), "nothing keeps roles here") {
		t.Errorf("%s", h.plain())
	}
	h = start(t, 120, 40, oneGPU, func(o *Options) { o.Controller, o.Roles = &fakeController{}, &fakeSteerer{} }).press("L")
	if !strings.Contains(h.plain(), "C arms control") {
		t.Errorf("%s", h.plain())
	}
}
