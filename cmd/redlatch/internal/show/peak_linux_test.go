package show

import (
	"os"
	"syscall"
)

// peak returns how many bytes of memory a process that has ended had at most.
func peak(p *os.ProcessState) (bytes int64, known bool) {
	usage, known := p.SysUsage().(*syscall.Rusage)
	if !known {
		return 0, false
	}
	return usage.Maxrss << 10, true
}
