package host

import (
	"os"
	"strconv"
	"strings"
)

// machine is how much of the processors' time the host of a virtual machine has given to
// others since it started, in the system's own unit of time.
type machine struct {
	stolen, total float64
}

// readMachine asks the system. The zero value is for one that does not count: any but
// Linux.
func readMachine() machine {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machine{}
	}
	m, _ := parseMachine(string(text))
	return m
}

// parseMachine reads the first line of /proc/stat, that of all processors.
func parseMachine(text string) (machine, bool) {
	const last = 8 // is what was stolen; what guests had, after it, is part of what users had
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) <= last || fields[0] != "cpu" {
		return machine{}, false
	}
	var m machine
	for _, f := range fields[1 : last+1] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return machine{}, false
		}
		m.total += n
		m.stolen = n
	}
	return m, true
}

// since returns which share of all time was stolen since an earlier count, and 0 when
// no time has passed.
func (m machine) since(earlier machine) float64 {
	if m.total <= earlier.total {
		return 0
	}
	return max(0, m.stolen-earlier.stolen) / (m.total - earlier.total)
}
