//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing: only Linux can tie a process to its parent. A
// test binary that is killed here leaves its servers behind.
func dieWithParent(*exec.Cmd) {}

// stopped has no way to ask, and trusts that the signal worked at once.
func stopped(int) (bool, error) { return true, nil }
