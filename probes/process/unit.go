package process

import (
	"regexp"
	"strings"
)

// Unit says in one word what a cgroup's path names: "k8s:…" with the
// beginning of the pod's uid, "slurm:JOB", "docker:…", "podman:…",
// "containerd:…", "crio:…" or "container:…" (whose is not said) with the
// beginning of the container's id, "lxc:NAME", "machine:NAME" or "systemd:UNIT". It is empty where the path
// names none of these. Where several are nested it is the outermost that
// somebody asked for: the job rather than the service that runs the jobs, the
// pod rather than its containers, the container rather than the services
// inside it.
//
// The path is made by whoever runs the process: a name in it proves nothing.
func Unit(cgroup string) string {
	parts := strings.FieldsFunc(cgroup, func(r rune) bool { return r == '/' })
	if len(parts) == 0 {
		return ""
	}
	for _, find := range []func([]string) string{kubernetes, slurm, container, systemd} {
		if u := find(parts); u != "" {
			return u
		}
	}
	return ""
}

// shortID is how much of a container's id its tools print; a pod's uid is
// told by its first group.
const shortID = 12

var (
	containerID = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// docker's and the runtimes' own names of scopes, with systemd as the cgroup driver
	containerScope = regexp.MustCompile(`^(docker|cri-containerd|crio|libpod|libpod-payload|nerdctl|containerd)-(?:conmon-)?([0-9a-f]{12,64})(?:\.scope)?$`)
	// podUID is a uid with "-" (or "_", as systemd wants it), or a static pod's hash
	podUID  = regexp.MustCompile(`^(?:kubepods(?:-besteffort|-burstable)?-)?pod([0-9a-f]{8})(?:[0-9a-f]{24}|(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?$`)
	slurmID = regexp.MustCompile(`^job_([0-9]+)$`)
)

var runtimes = map[string]string{
	"docker": "docker", "cri-containerd": "containerd", "containerd": "containerd", "nerdctl": "containerd",
	"crio": "crio", "libpod": "podman", "libpod-payload": "podman",
}

func kubernetes(parts []string) string {
	below := false
	for _, p := range parts {
		// a kubelet inside a container ("kind") hangs its slices below its own
		below = below || strings.HasPrefix(p, "kubepods") || strings.HasPrefix(p, "kubelet-kubepods") || p == "kubelet"
		if m := podUID.FindStringSubmatch(strings.TrimPrefix(p, "kubelet-")); m != nil && below {
			return "k8s:" + m[1]
		}
	}
	return ""
}

func slurm(parts []string) string {
	below := false
	for _, p := range parts {
		below = below || strings.HasPrefix(p, "slurm") || strings.HasSuffix(p, "_slurmstepd.scope")
		if m := slurmID.FindStringSubmatch(p); m != nil && below {
			return "slurm:" + m[1]
		}
	}
	return ""
}

func container(parts []string) string {
	for i, p := range parts {
		if m := containerScope.FindStringSubmatch(p); m != nil {
			return runtimes[m[1]] + ":" + m[2][:shortID]
		}
		parent := ""
		if i > 0 {
			parent = parts[i-1]
		}
		switch {
		case containerID.MatchString(p):
			switch {
			case strings.HasPrefix(parent, "docker"), parent == "moby", parent == "actions_job", parent == "buildkit":
				return "docker:" + p[:shortID]
			case strings.HasPrefix(parent, "libpod_parent"), parent == "libpod":
				return "podman:" + p[:shortID]
			case parent == "crio":
				return "crio:" + p[:shortID]
			case parent == "default", parent == "k8s.io": // namespaces of containerd
				return "containerd:" + p[:shortID]
			}
			return "container:" + p[:shortID] // whose, the path does not say
		case strings.HasPrefix(p, "libpod-") && containerID.MatchString(strings.TrimPrefix(p, "libpod-")):
			return "podman:" + strings.TrimPrefix(p, "libpod-")[:shortID]
		case strings.HasPrefix(p, "lxc.payload."):
			return named("lxc", strings.TrimPrefix(p, "lxc.payload."))
		case parent == "lxc", parent == "lxc.payload":
			return named("lxc", p)
		case strings.HasPrefix(p, "systemd-nspawn@") && strings.HasSuffix(p, ".service"):
			return named("machine", strings.TrimSuffix(strings.TrimPrefix(p, "systemd-nspawn@"), ".service"))
		case parent == "machine.slice" && strings.HasPrefix(p, "machine-") && strings.HasSuffix(p, ".scope"):
			return named("machine", strings.TrimSuffix(strings.TrimPrefix(p, "machine-"), ".scope"))
		}
	}
	return ""
}

func named(kind, name string) string {
	if name == "" {
		return ""
	}
	return kind + ":" + name
}

// systemd is the innermost service or scope.
func systemd(parts []string) string {
	for i := len(parts) - 1; i >= 0; i-- {
		if p := parts[i]; strings.HasSuffix(p, ".service") || strings.HasSuffix(p, ".scope") {
			return "systemd:" + p
		}
	}
	return ""
}
