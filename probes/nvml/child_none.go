//go:build !cgo || nonvml

package nvml

// builtIn: NVML is in this build.
const builtIn = false

// ask says that there is nothing to ask.
func ask(func(line) bool) *failure { return &failure{Reason: failNotBuiltIn} }
