package steer

import (
	"fmt"
	"slices"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Proc names a process: its pid and when it started, in clock ticks since boot.
type Proc struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start,omitempty"`
}

// ProcOf is the process of a row.
func ProcOf(v *sched.TSGView) Proc { return Proc{v.Process.PID, v.Process.Start} }

// Roles says who has which role: marks first, then the first rule that fits.
type Roles struct {
	Marks map[Proc]Role
	Rules []Rule
	BE    uint64 // us, of best-effort processes; 0: AutoBE, and never longer than what they have
	LC    uint64 // us, of latency-critical ones; 0: as they have it

	// Original gives what a TSG had before its role, by generation, where a role
	// has set something; nil: none has.
	Original func(gen uint64) (us uint64, ok bool)

	// Lifted are processes whose role is suspended, and why.
	Lifted map[Proc]string

	clients map[sched.Handle]sticky // what a client's role came from
}

// sticky is the role of an RM client whose process was marked: a fork shares the
// client, and goes on with it after its parent has ended.
type sticky struct {
	proc Proc
	role Role
}

// Mark gives a process a role, or with NoRole takes it away.
func (r *Roles) Mark(p Proc, role Role) {
	if r.Marks == nil {
		r.Marks = map[Proc]Role{}
	}
	if role == NoRole {
		delete(r.Marks, p)
		for c, s := range r.clients {
			if s.proc == p {
				delete(r.clients, c)
			}
		}
		return
	}
	r.Marks[p] = role
}

// Want is one TSG that is to have a timeslice.
type Want struct {
	Row  *sched.TSGView
	Proc Proc
	Role Role
	US   uint64
}

// Member is a process with a role.
type Member struct {
	Proc    Proc
	Process sched.Process
	Role    Role
	By      string // "mark", or the rule
	Lifted  string // why its role is suspended; empty: it is not
	MPS     bool
	TSGs    int // on shared runlists
}

// Assignment is who has which role now, and what each TSG is to have.
type Assignment struct {
	Members []Member // by pid
	Wants   []Want
	Notes   []string // what is noteworthy about it, in sentences
	// Competing is how many best-effort processes compete among themselves on one
	// graphics engine, at most.
	Competing int
}

// Of is the role of a process.
func (a *Assignment) Of(p Proc) Role {
	for i := range a.Members {
		if a.Members[i].Proc == p {
			return a.Members[i].Role
		}
	}
	return NoRole
}

// LongestBE is the longest timeslice (us) that a best-effort process's graphics TSG
// is to have; 0: none is.
func (a *Assignment) LongestBE() (us uint64) {
	for _, w := range a.Wants {
		if w.Role == BE && IsCompute(w.Row) {
			us = max(us, w.US)
		}
	}
	return us
}

// settled is how long after its creation a TSG gets its role where it is not
// seen being scheduled: libcuda sets a timeslice of its own first.
const settled = 250 * time.Millisecond

// place is a runlist of a GPU.
type place struct{ gpu, runlist int }

// Assign gives the roles of the processes of a snapshot.
func (r *Roles) Assign(snap *sched.Snapshot) *Assignment {
	a := &Assignment{}
	shared := sharedRunlists(snap)
	lcAt := map[place]bool{}
	roles := map[Proc]*Member{}
	own := map[Proc]uint64{}
	eachRow(snap, func(v *sched.TSGView) {
		p := ProcOf(v)
		if roles[p] != nil {
			return
		}
		if role, by, us := r.roleOf(v); role != NoRole {
			roles[p] = &Member{Proc: p, Process: v.Process, Role: role, By: by, Lifted: r.Lifted[p], MPS: v.MPS}
			own[p] = us
		}
	})
	eachRow(snap, func(v *sched.TSGView) {
		if m := roles[ProcOf(v)]; m != nil && m.Role == LC && v.ID.Runlist != sched.Unknown {
			lcAt[place{v.ID.GPU, v.ID.Runlist}] = true
		}
	})
	r.assignOthers(snap, a, roles, own, lcAt)
	r.want(snap, a, roles, own, shared)
	for _, m := range roles {
		a.Members = append(a.Members, *m)
	}
	sortMembers(a.Members)
	var mps []*sched.TSGView
	eachRow(snap, func(v *sched.TSGView) {
		if v.MPS && v.Clients > 0 {
			mps = append(mps, v)
		}
	})
	a.notes(mps)
	return a
}

// roleOf is the role that marks and rules give a row's process, but for "others".
func (r *Roles) roleOf(v *sched.TSGView) (role Role, by string, us uint64) {
	p := ProcOf(v)
	if m, ok := r.Marks[p]; ok {
		r.stick(v, p, m)
		return m, "mark", 0
	}
	if s, ok := r.clients[v.Object.Client]; ok && r.Marks[s.proc] == s.role {
		return s.role, fmt.Sprintf("mark of pid %d, whose RM client it shares", s.proc.PID), 0
	}
	for _, rule := range r.Rules {
		if rule.Fits(&v.Process, v.HolderPIDs) {
			return rule.Role, rule.String(), rule.Timeslice
		}
	}
	return NoRole, "", 0
}

func (r *Roles) stick(v *sched.TSGView, p Proc, role Role) {
	if r.clients == nil {
		r.clients = map[sched.Handle]sticky{}
	}
	r.clients[v.Object.Client] = sticky{p, role}
}

// assignOthers makes best-effort all that share a runlist with an LC process,
// where a rule says so. MPS servers only where a rule or a mark names them: an LC
// process can be one of their clients.
func (r *Roles) assignOthers(snap *sched.Snapshot, a *Assignment, roles map[Proc]*Member, us map[Proc]uint64, lcAt map[place]bool) {
	i := slices.IndexFunc(r.Rules, func(rule Rule) bool { return rule.Others })
	if i < 0 {
		return
	}
	said := map[Proc]bool{}
	eachRow(snap, func(v *sched.TSGView) {
		p := ProcOf(v)
		if roles[p] != nil || !IsCompute(v) || !lcAt[place{v.ID.GPU, v.ID.Runlist}] {
			return
		}
		if v.MPS {
			if !said[p] {
				said[p] = true
				a.Notes = append(a.Notes, fmt.Sprintf("pid %d is an MPS server: its clients share one TSG, so it is left alone unless a rule names it", p.PID))
			}
			return
		}
		roles[p] = &Member{Proc: p, Process: v.Process, Role: BE, By: "others", Lifted: r.Lifted[p]}
		us[p] = r.Rules[i].Timeslice
	})
}

// want lists what each TSG is to have: all TSGs of a process with a role that are
// on a runlist which another process uses too.
func (r *Roles) want(snap *sched.Snapshot, a *Assignment, roles map[Proc]*Member, own map[Proc]uint64, shared map[place]bool) {
	others := competing(snap, roles)
	eachRow(snap, func(v *sched.TSGView) {
		if IsCompute(v) {
			a.Competing = max(a.Competing, others[place{v.ID.GPU, v.ID.Runlist}])
		}
	})
	eachRow(snap, func(v *sched.TSGView) {
		p := ProcOf(v)
		m := roles[p]
		if m == nil || !shared[place{v.ID.GPU, v.ID.Runlist}] {
			return
		}
		m.TSGs++
		us := own[p]
		if us == 0 {
			us = r.LC
			if m.Role == BE {
				us = r.BE
				if us == 0 {
					us = r.auto(v, others[place{v.ID.GPU, v.ID.Runlist}])
				}
			}
		}
		if us == 0 || m.Lifted != "" || !ready(v, snap.Time) {
			return
		}
		a.Wants = append(a.Wants, Want{Row: v, Proc: p, Role: m.Role, US: us})
	})
}

// auto is what a best-effort TSG gets where nothing was asked for; 0: it stays as
// it is, because its own timeslice is not longer.
func (r *Roles) auto(v *sched.TSGView, competing int) uint64 {
	us, had := AutoBE(competing), v.Timeslice
	if r.Original != nil {
		if was, ok := r.Original(v.Gen); ok {
			had = &was
		}
	}
	if had != nil && *had <= us {
		return 0
	}
	return us
}

// ready tells whether a TSG has got past what its maker does to it.
func ready(v *sched.TSGView, now sched.Time) bool {
	if v.Created == 0 || now.Sub(v.Created) >= settled {
		return true
	}
	return v.Scheduled != nil && *v.Scheduled
}

// sharedRunlists are those on which two processes have TSGs.
func sharedRunlists(snap *sched.Snapshot) map[place]bool {
	owner, shared := map[place]Proc{}, map[place]bool{}
	eachRow(snap, func(v *sched.TSGView) {
		at, p := place{v.ID.GPU, v.ID.Runlist}, ProcOf(v)
		if o, ok := owner[at]; ok && o != p && at.runlist != sched.Unknown {
			shared[at] = true
		}
		owner[at] = p
	})
	return shared
}

// eachRow visits the TSGs that belong to a process and can be acted on.
func eachRow(snap *sched.Snapshot, f func(*sched.TSGView)) {
	for i := range snap.TSGs {
		if v := &snap.TSGs[i]; !v.Context && v.Process.PID > 0 && v.Object.Handle != 0 {
			f(v)
		}
	}
}

// IsCompute tells whether a row is on a graphics/compute engine.
func IsCompute(v *sched.TSGView) bool {
	return v.Engine != nil && rm.IsGraphicsEngine(*v.Engine) || v.Engine == nil && v.ID.Runlist == 0
}

func sortMembers(m []Member) {
	slices.SortFunc(m, func(a, b Member) int {
		if a.Role != b.Role {
			if a.Role == LC {
				return -1
			}
			return 1
		}
		return a.Proc.PID - b.Proc.PID
	})
}

// notes says what of the roles has an outcome that is not plain. shared are the
// TSGs that clients of MPS share.
func (a *Assignment) notes(shared []*sched.TSGView) {
	lc, be := 0, 0
	for _, m := range a.Members {
		switch m.Role {
		case LC:
			lc++
		case BE:
			be++
		}
		if m.MPS {
			a.Notes = append(a.Notes, fmt.Sprintf("pid %d is an MPS server: its role hits all of its clients", m.Proc.PID))
		}
	}
	for _, v := range shared {
		for _, m := range a.Members {
			if m.Proc != ProcOf(v) && slices.Contains(v.HolderPIDs, m.Proc.PID) {
				a.Notes = append(a.Notes, fmt.Sprintf("pid %d computes in the TSG of the MPS server, pid %d: a role that is to touch that work must name the server", m.Proc.PID, v.Process.PID))
			}
		}
	}
	if lc > 1 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d processes are latency-critical: they are not protected from each other, and take turns as before", lc))
	}
	if lc > 0 && be == 0 {
		a.Notes = append(a.Notes, "no best-effort process shares a runlist with a latency-critical one: there is nothing to change")
	}
}
