package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// inSession makes cmd the leader of a session, to which everything belongs that
// it starts, whatever process groups that is put into.
func inSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// endSession kills what is left of the session that a process led. Mutants may
// keep tests from clearing up.
func endSession(leader int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is fine
	for _, path := range stats {
		stat, err := os.ReadFile(path) //nolint:gosec // one of the kernel's
		if err != nil || session(stat) != leader {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
	}
}

// session returns the session in a /proc/pid/stat: pid (name) state ppid pgrp
// session …, where the name may hold blanks and brackets of its own.
func session(stat []byte) int {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 {
		return 0
	}
	id, _ := strconv.Atoi(string(fields[3])) // 0 is no session
	return id
}
