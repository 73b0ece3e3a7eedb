package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// setTimerSlack is PR_SET_TIMERSLACK.
const setTimerSlack = 29

// time.Sleep is not precise enough. The caller must have called runtime.LockOSThread.
func sleepUntil(due time.Time) {
	left := time.Until(due)
	// With the default timer slack, sleeps end 50 µs late.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	for ; left > 0; left = time.Until(due) { // a signal interrupts the sleep
		spec := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&spec, nil)
	}
}

// tick is the unit of time in /proc/<pid>/stat on every kernel.
const tick = time.Second / 100

// CPUTime returns the total CPU time of the processes. Unknown processes count as 0.
func CPUTime(all ...*os.Process) time.Duration {
	var sum time.Duration
	for _, p := range all {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid)); err == nil {
			sum += parseCPUTime(string(text))
		}
	}
	return sum
}

// The program's name may contain spaces and parentheses.
func parseCPUTime(line string) time.Duration {
	const user, system = 11, 12 // indexes of the fields after the name
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

// Runnable reports whether a thread of any of the processes is running or is waiting for a
// processor.
func Runnable(all ...*os.Process) bool {
	for _, p := range all {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid)) // the pattern is valid
		for _, name := range threads {
			if text, err := os.ReadFile(name); err == nil && isRunnable(string(text)) { //nolint:gosec // a file in /proc
				return true
			}
		}
	}
	return false
}

func isRunnable(line string) bool {
	return strings.HasPrefix(line[strings.LastIndexByte(line, ')')+1:], " R ")
}

// Rest stops a process until Wake is called.
func Rest(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Wake resumes a process stopped by Rest.
func Wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// OwnCPUTime returns the user and system time of this process.
func OwnCPUTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
