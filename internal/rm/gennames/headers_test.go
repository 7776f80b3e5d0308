package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestEntries(t *testing.T) {
	for _, c := range []struct {
		name, path, text string
		want             []entry
	}{
		{"a command", includes + "ctrl/ctrl1234.h", `
#define NV1234_CTRL_CMD_DO_THIS (0x12340101U) /* finn: Evaluated from "(FINN_X_INTERFACE_ID << 8) | NV1234_DO_THIS_PARAMS_MESSAGE_ID" */
#define NV1234_CTRL_THING_MAX (0x20) /* finn: Evaluated from "4 * 8" */
#define NV1234_CTRL_LEGACY_PRIVILEGED (0x1234c000) /* finn: Evaluated from "(FINN_X_INTERFACE_ID << 8)" */
#define NV1234_CTRL_CMD_VALUE (0x12340102)
`, []entry{{control, 0x12340101, "NV1234_CTRL_CMD_DO_THIS"}}},
		{"statuses", includes + "nvstatuscodes.h", `
NV_STATUS_CODE(NV_OK,       0x00000000, "fine")
NV_STATUS_CODE(NV_ERR_NOT,  0x00000017, "not")
`, []entry{{status, 0, "NV_OK"}, {status, 0x17, "NV_ERR_NOT"}}},
		{"the list of classes, with an older spelling", allClasses, `
#ifndef NV01_THING
#define NV01_THING                (0x00000012)
#endif
#ifndef NV1_THING
#define NV1_THING                 (0x00000012)
#endif
`, []entry{{class, 0x12, "NV01_THING"}}},
		{"a class's own header", includes + "class/cl9876.h", `
#define THING_A  (0x00009876)
#define NV9876_METHOD  (0x00000100)
#define THING_A_MESSAGE_ID (0x9876U)
`, []entry{{classOld, 0x9876, "THING_A"}}},
		{"any other header", includes + "nvtypes.h", "#define NV_X 0x1\n", nil},
	} {
		if got := entries(c.path, c.text); !reflect.DeepEqual(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNewestNameIsFirst(t *testing.T) {
	names := tables{}
	for _, e := range []entry{
		{control, 7, "OLD"}, {control, 7, "NEW"}, {control, 7, "OLD"}, {control, 7, "NEW"}, {control, 8, "SAME"}, {control, 8, "SAME"},
	} {
		names.add(e)
	}
	src := string(names.source(control, "v", "things", "drivers 1 to 2", 8))
	for _, want := range []string{`0x00000007: "NEW|OLD",`, `0x00000008: "SAME",`, "DO NOT EDIT"} {
		if !strings.Contains(src, want) {
			t.Errorf("no %s in\n%s", want, src)
		}
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"550.90.12", "550.100", true}, {"550.100", "550.90.12", false}, {"580.65.06", "580.142", true},
		{"595.44.02", "595.45.04", true}, {"570.144", "570.144", false}, {"555.58", "555.58.02", true},
	} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("older(%s, %s) = %v", c.a, c.b, got)
		}
	}
}
