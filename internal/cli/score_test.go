package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

func scoreOf(t *testing.T, args ...string) sched.ScoreOutput {
	t.Helper()
	code, out, errs := tsgtop(append([]string{"score", "--json"}, args...)...)
	if code != exitOK {
		t.Fatalf("%v: code %d, %s", args, code, errs)
	}
	var s sched.ScoreOutput
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// A recording of the simulated GPU is scored again by process, user and unit. A
// process here has one compute TSG, so its group has exactly that one's
// statistics; a user's of several is held against its parts.
func TestScoreBy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	if code, _, errs := tsgtop("record", "-o", file, "--source", "sim:speed=20,tsgs=3", "--for", "300ms"); code != exitOK {
		t.Fatalf("code %d, %s", code, errs)
	}
	one := scoreOf(t, "--source", file)
	if one.Groups != nil {
		t.Error("groups that nobody asked for")
	}
	compute := map[int]sched.ScoreTSG{}
	for _, row := range one.TSGs {
		switch {
		case *row.Runlist == 0:
			compute[row.PID] = row
			if row.Forced == nil || *row.Forced+*row.Voluntary == 0 || uint64(*row.Forced+*row.Voluntary) > row.Turns {
				t.Errorf("pid %d: forced %v, voluntary %v of %d turns (%q)", row.PID, row.Forced, row.Voluntary, row.Turns, row.Why)
			}
		case row.Forced != nil || !strings.Contains(row.Why, "copy engine"):
			t.Errorf("a copy engine's switches: %v %q", row.Forced, row.Why)
		}
	}
	if len(compute) != 3 {
		t.Fatalf("%d compute TSGs", len(compute))
	}
	for _, by := range []string{"process", "user", "unit"} {
		got := scoreOf(t, "--source", file, "--by", by)
		var n, forced uint64
		for _, g := range got.Groups {
			if g.By != by || g.ResidencyUS == nil {
				t.Fatalf("by %s: %+v", by, g)
			}
			n += g.ResidencyUS.N
			forced += *g.Forced
			for pid, row := range compute {
				if by == "process" && strings.HasPrefix(g.Group, jsonInt(pid)+" ") &&
					(!reflect.DeepEqual(g.ResidencyUS, row.ResidencyUS) || !reflect.DeepEqual(g.WaitUS, row.WaitUS) || *g.Forced != *row.Forced) {
					t.Errorf("%s: %+v, its one TSG %+v", g.Group, g.ResidencyUS, row.ResidencyUS)
				}
			}
		}
		for _, row := range compute {
			n -= row.ResidencyUS.N
			forced -= *row.Forced
		}
		if n != 0 || forced != 0 {
			t.Errorf("by %s: turns or switches lost or counted twice: %d, %d", by, int64(n), int64(forced))
		}
		if by == "process" && len(got.Groups) != 3 {
			t.Errorf("%d processes", len(got.Groups))
		}
	}
	code, out, _ := tsgtop("score", "--source", file, "--by", "process")
	if code != exitOK || !strings.Contains(out, "PROCESS") || strings.Count(out, "residency us") != 3 || strings.Count(out, "forced in mid-kernel") != 3 {
		t.Errorf("code %d:\n%s", code, out)
	}
	if code, _, errs := tsgtop("score", "--source", file, "--by", "colour"); code != exitUsage || !strings.Contains(errs, "process, user or unit") {
		t.Errorf("code %d, %s", code, errs)
	}
}

func jsonInt(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// Hostile names in the groups' names and in why switches are not known.
func TestHostileGroups(t *testing.T) {
	b := sched.NewBoard(nil, sched.Options{})
	b.Feed(hostile())
	for _, by := range []string{"process", "user", "unit"} {
		group, err := scoreGroup(by)
		if err != nil {
			t.Fatal(err)
		}
		snap := b.Snapshot(sched.SnapshotOptions{Group: group, GroupTag: by})
		for i := range snap.Groups {
			sc := &snap.Groups[i].Score[sched.WindowAll]
			sc.Switches, sc.SwitchesWhy = nil, evil
			if sc.Residency == nil {
				sc.Residency = &sched.Stats{N: 1}
			}
		}
		var out, lines bytes.Buffer
		printScore(&out, snap)
		mustBeSafe(t, by, out.String())
		mustShow(t, by, out.String())
		if err := writeJSON(&lines, snap.ScoreOutput(sched.WindowAll)); err != nil {
			t.Fatal(err)
		}
		mustBeSafeJSON(t, by+" --json", lines.String())
		mustShow(t, by+" --json", lines.String())
	}
}
