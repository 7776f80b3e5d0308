package ui

import (
	"strings"

	"charm.land/bubbles/v2/key"
)

// action is what a key does.
type action uint8

// The actions, in no particular order; keyTable gives them keys and words.
const (
	actNone action = iota
	actTSGs
	actCalls
	actScore
	actXid
	actDetail
	actBack
	actHelp
	actQuit
	actSuspend
	actRedraw
	actUp
	actDown
	actPageUp
	actPageDown
	actTop
	actBottom
	actPause
	actFilter
	actSort
	actReverse
	actFlat
	actGroup
	actFold
	actColumns
	actMetric
	actWindow
	actGPU
	actZoomIn
	actZoomOut
	actZoomReset
	actLeft
	actRight
	actPanLeft
	actPanRight
	actTheme
	actArm
	actPreempt
	actRepeat
	actTimeslice
	actInterleave
	actMarkLC
	actMarkBE
	actUndo
	actRecord
	actRelease
	actSlower
	actFaster
	actNextMark
	actPrevMark
)

// screenID names a screen.
type screenID uint8

// The screens.
const (
	screenTSGs screenID = iota
	screenCalls
	screenScore
	screenXid
	screenDetail
	screenHelp
	numScreens
)

var screenNames = [numScreens]string{"tsgs", "calls", "score", "xid", "detail", "help"}

// where a key counts: a set of screens.
type screenSet uint8

const (
	onTSGs   screenSet = 1 << screenTSGs
	onCalls  screenSet = 1 << screenCalls
	onScore  screenSet = 1 << screenScore
	onXid    screenSet = 1 << screenXid
	onDetail screenSet = 1 << screenDetail
	onHelp   screenSet = 1 << screenHelp
	onAll              = onTSGs | onCalls | onScore | onXid | onDetail | onHelp
	onLists            = onTSGs | onCalls | onScore | onXid | onDetail
	onTable            = onTSGs | onScore
	onTarget           = onTSGs | onScore | onDetail
)

// need is what has to be there for a key to do something.
type need uint8

const (
	needNothing need = iota
	needControl      // armed control
	needRoles        // armed control, and somebody who keeps roles
	needController
	needPlayer
	needMarks
	needReleaser
	needRecorder
	needSeveralGPUs
)

// binding is one row of the key table.
type binding struct {
	act action
	key.Binding
	on      screenSet
	section string
	need    need
	foot    int    // rank in the footer, 1 is the last to give way; 0: not there
	short   string // in the footer
}

func bind(act action, section string, on screenSet, keys, shown, does string) binding {
	return binding{act: act, section: section, on: on,
		Binding: key.NewBinding(key.WithKeys(strings.Fields(keys)...), key.WithHelp(shown, does))}
}

func (b binding) inFoot(rank int, short string) binding {
	b.foot, b.short = rank, short
	return b
}

func (b binding) needs(n need) binding {
	b.need = n
	return b
}

// keyTable is every key of the screen. The help screen, the footer and
// docs/keys.md are made from it. No key is a function key or a chord that
// some terminals swallow, apart from Ctrl-C, Ctrl-L and Ctrl-Z.
var keyTable = []binding{
	bind(actTSGs, "Screens", onAll, "1", "1", "TSGs: the tree, with the lane over it").inFoot(3, "tsgs"),
	bind(actCalls, "Screens", onAll, "2", "2", "calls: the stream of RM calls and of what became of TSGs").inFoot(3, "calls"),
	bind(actScore, "Screens", onAll, "3", "3", "score: the scorecard of each TSG or process").inFoot(3, "score"),
	bind(actXid, "Screens", onAll, "4", "4", "xid: errors, beside the command that was in flight").inFoot(3, "xid"),
	bind(actDetail, "Screens", onTable, "enter", "enter", "detail of the selected TSG; opens or folds any other row").inFoot(5, "detail"),
	bind(actBack, "Screens", onLists|onHelp, "esc backspace", "esc", "back; clears the filter"),
	bind(actHelp, "Screens", onAll, "?", "?", "this list of keys").inFoot(2, "help"),
	bind(actQuit, "Screens", onAll, "q ctrl+c", "q", "quit (Ctrl-C too)").inFoot(1, "quit"),
	bind(actSuspend, "Screens", onAll, "ctrl+z", "ctrl+z", "suspend; `fg` comes back"),
	bind(actRedraw, "Screens", onAll, "ctrl+l", "ctrl+l", "draw the whole screen again"),

	bind(actUp, "Moving", onAll, "up k", "↑ k", "up"),
	bind(actDown, "Moving", onAll, "down j", "↓ j", "down"),
	bind(actPageUp, "Moving", onAll, "pgup ctrl+b", "pgup", "a page up (Ctrl-B too)"),
	bind(actPageDown, "Moving", onAll, "pgdown ctrl+f", "pgdn", "a page down (Ctrl-F too)"),
	bind(actTop, "Moving", onAll, "home", "home", "to the first row"),
	bind(actBottom, "Moving", onAll, "end", "end", "to the last row; in calls: follow again"),
	bind(actPause, "Moving", onAll, "space", "space", "pause and go on: the screen, or what is replayed").inFoot(8, "pause"),

	bind(actFilter, "Finding", onTable|onCalls|onXid, "/", "/", "filter as you type: words, or pid: exe: user: unit: tsg:").inFoot(6, "filter"),
	bind(actSort, "Finding", onTable, "s", "s", "sort by the next column").inFoot(7, "sort"),
	bind(actReverse, "Finding", onTable, "S", "S", "the other direction"),
	bind(actFlat, "Finding", onTSGs, "F", "F", "tree or flat list"),
	bind(actGroup, "Finding", onTable, "g", "g", "group by process, user, unit, or not"),
	bind(actFold, "Finding", onTSGs, "o", "o", "open or fold the runlist, GPU or group"),
	bind(actColumns, "Finding", onTable, "c", "c", "choose the columns"),
	bind(actMetric, "Finding", onScore, "m", "m", "score: residency, wait or off").inFoot(6, "metric"),
	bind(actWindow, "Finding", onTarget, "w", "w", "numbers of the last 1 s, 10 s or since start"),
	bind(actGPU, "Finding", onTable, "G", "G", "the next GPU alone, or all").needs(needSeveralGPUs),

	bind(actZoomIn, "Lane", onTSGs|onDetail, "+ =", "+", "a shorter span, down to 10 ms"),
	bind(actZoomOut, "Lane", onTSGs|onDetail, "-", "-", "a longer span, up to 10 s"),
	bind(actZoomReset, "Lane", onTSGs|onDetail, "0", "0", "the first span again, and the present"),
	bind(actLeft, "Lane", onLists, "left", "←", "back in time: the paused lane, or a replay by 5 s"),
	bind(actRight, "Lane", onLists, "right", "→", "forward in time"),
	bind(actPanLeft, "Lane", onTSGs|onDetail, "h", "h", "pan the paused lane back"),
	bind(actPanRight, "Lane", onTSGs|onDetail, "l", "l", "pan it forward"),

	bind(actArm, "Acting", onTarget|onXid, "C", "C", "arm or disarm control").needs(needController).inFoot(4, "arm"),
	bind(actPreempt, "Acting", onTarget, "p", "p", "preempt the selected TSG").needs(needControl).inFoot(4, "preempt"),
	bind(actRepeat, "Acting", onTarget, "P", "P", "preempt it again and again, until it is caught on the engine").needs(needControl),
	bind(actTimeslice, "Acting", onTarget, "t", "t", "set its timeslice").needs(needControl).inFoot(4, "timeslice"),
	bind(actInterleave, "Acting", onTarget, "i", "i", "set its interleave level").needs(needControl).inFoot(9, "interleave"),
	bind(actMarkLC, "Acting", onTarget, "L", "L", "its process is latency-critical, or not any more").needs(needRoles),
	bind(actMarkBE, "Acting", onTarget, "B", "B", "its process is best-effort, or not any more: it gets short turns").needs(needRoles),
	bind(actUndo, "Acting", onTarget, "u", "u", "undo: put back what a command changed").needs(needControl).inFoot(4, "undo"),
	bind(actRelease, "Acting", onAll, "r", "r", "let go of the GPUs' devices, or take them again").needs(needReleaser),

	bind(actRecord, "Recording", onAll, "R", "R", "start or stop a recording").needs(needRecorder),
	bind(actSlower, "Recording", onAll, "[", "[", "replay at half the speed").needs(needPlayer),
	bind(actFaster, "Recording", onAll, "]", "]", "replay at twice the speed").needs(needPlayer),
	bind(actNextMark, "Recording", onAll, "n", "n", "to the next command or Xid").needs(needMarks),
	bind(actPrevMark, "Recording", onAll, "N", "N", "to the one before").needs(needMarks),

	bind(actTheme, "Look", onAll, "T", "T", "the next theme"),
}

// actionOf finds what a key does on a screen.
func actionOf(keystroke string, on screenID) (binding, bool) {
	for _, b := range keyTable {
		if b.on&(1<<on) == 0 {
			continue
		}
		for _, k := range b.Keys() {
			if k == keystroke {
				return b, true
			}
		}
	}
	return binding{}, false
}
