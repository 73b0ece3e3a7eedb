//go:build !linux

package host

import "os/exec"

// startOn cannot choose processors here, and is never asked to: see processors.
func startOn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }

// processors knows none, so that nothing is placed.
func processors() []int { return nil }
