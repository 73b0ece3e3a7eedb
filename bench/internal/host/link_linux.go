package host

import (
	"syscall"
	"time"
)

// setTimerSlack is PR_SET_TIMERSLACK.
const setTimerSlack = 29

// sleepUntil sleeps in the kernel, as exactly as that can: the runtime rounds up to
// milliseconds when it has nothing else to do. The caller is locked to its thread.
func sleepUntil(due time.Time) {
	left := time.Until(due)
	// The least slack is a nanosecond; without it sleeps end 50 µs late.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	for ; left > 0; left = time.Until(due) { // a signal ends it early
		spec := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&spec, nil)
	}
}
