package rm

import (
	"fmt"
	"strconv"
	"strings"
)

// LayoutInfo is what differs between driver versions in the ABI that this
// package describes. Layouts are those of the newest driver; where an older one
// has a shorter struct, the size is here: RM takes only its own size.
type LayoutInfo struct {
	Driver   string // as it was asked for
	Branch   int    // 580 of "580.159.04"
	Compared bool   // the branch's headers were compared; otherwise it is taken to be like its nearest older one

	ScheduleSize       int  // of ScheduleParams
	ProbedIDsSize      int  // of ProbedIDsParams
	EnginesSize        int  // of EnginesParams
	EngineRunlistsSize int  // of EngineRunlistsParams
	EngineRunlists     bool // CtrlEngineRunlists tells runlist ids
	UniqueIDs          bool // CtrlTSGUniqueIDs, CtrlChannelUniqueIDs
	ContextID          bool // CtrlChannelContextID
}

// layouts: what changed in which branch, oldest first. Read from the headers of
// all 101 releases of the open modules from 550.40.07 to 595.45.04: within a
// branch nothing of it changes.
var layouts = []struct {
	branch int
	change func(*LayoutInfo)
}{
	{550, func(l *LayoutInfo) {
		l.ScheduleSize, l.ProbedIDsSize, l.EnginesSize, l.EngineRunlistsSize = 2, 0x100, 0x104, 0x200
	}},
	{555, func(l *LayoutInfo) { l.ContextID = true }},
	{560, func(l *LayoutInfo) { l.EnginesSize, l.EngineRunlistsSize = 0x154, 0x2a0 }},
	{565, func(*LayoutInfo) {}},
	{570, func(l *LayoutInfo) { l.EngineRunlistsSize, l.EngineRunlists, l.UniqueIDs = 0x3f0, true, true }},
	{575, func(l *LayoutInfo) { l.ScheduleSize = 3 }},
	{580, func(l *LayoutInfo) { l.ProbedIDsSize = 0x180 }},
	{590, func(*LayoutInfo) {}},
	{595, func(*LayoutInfo) {}},
}

// Layout is the ABI of a driver version, such as "580.159.04". It is an error
// where the text is no version, or the driver is older than 550. A branch that
// was not compared, such as one newer than 595, gives the nearest older one's
// layout, with Compared false.
func Layout(driver string) (LayoutInfo, error) {
	major, _, _ := strings.Cut(strings.TrimSpace(driver), ".")
	branch, err := strconv.Atoi(major)
	if err != nil {
		return LayoutInfo{}, fmt.Errorf("driver version %q: want a number such as 580.159.04", driver)
	}
	if branch < layouts[0].branch {
		return LayoutInfo{}, fmt.Errorf("driver version %q: its calls are not known here; %d is the oldest that is", driver, layouts[0].branch)
	}
	l := LayoutInfo{Driver: driver, Branch: branch}
	for _, v := range layouts {
		if v.branch <= branch {
			v.change(&l)
			l.Compared = v.branch == branch
		}
	}
	return l, nil
}
