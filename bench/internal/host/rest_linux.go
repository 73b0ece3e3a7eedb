package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/<pid>/stat, whatever the kernel's own is.
const tick = time.Second / 100

// CPUTime returns the processor time that processes have had in all. One that the system
// does not know counts for nothing.
func CPUTime(all ...*os.Process) time.Duration {
	var sum time.Duration
	for _, p := range all {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid)); err == nil {
			sum += parseCPUTime(string(text))
		}
	}
	return sum
}

// parseCPUTime reads the line of a process: what it spent on its own, and the system on
// it; 0 where that is not to be read. The name of its program, the second field, may have
// blanks.
func parseCPUTime(line string) time.Duration {
	const user, system = 11, 12 // after the name
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) <= system {
		return 0
	}
	u, err := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	if err != nil || err2 != nil {
		return 0
	}
	return time.Duration(u+s) * tick
}

// Runnable reports whether a thread of any of the processes runs, or waits for a processor.
func Runnable(all ...*os.Process) bool {
	for _, p := range all {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid)) // the pattern is right
		for _, name := range threads {
			if text, err := os.ReadFile(name); err == nil && isRunnable(string(text)) { //nolint:gosec // of the kernel
				return true
			}
		}
	}
	return false
}

// isRunnable reads the line of a thread: its state follows its name.
func isRunnable(line string) bool {
	return strings.HasPrefix(line[strings.LastIndexByte(line, ')')+1:], " R ")
}

// Rest stops a process until Wake: it takes no processor time and knows nothing of the
// time that passes.
func Rest(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Wake lets a process go on that rests.
func Wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
