// Package stolen tells how much of the processors' time the host of a virtual machine
// has given to others. What is measured or tested meanwhile says more about the host
// than about the code. It is for tests and measurements, and no part of the product.
package stolen

import (
	"os"
	"strconv"
	"strings"
)

// Count is what the system has counted since it started, in its own unit of time.
type Count struct {
	// Stolen is what others had of Total, the time of all processors.
	Stolen, Total float64
}

// Read asks the system. It returns false where the system does not count: elsewhere
// than on Linux.
func Read() (Count, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Count{}, false
	}
	return Parse(string(text))
}

// Parse reads the first line of /proc/stat, that of all processors.
func Parse(text string) (Count, bool) {
	const last = 8 // is what was stolen; what guests had, after it, is part of what users had
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) <= last || fields[0] != "cpu" {
		return Count{}, false
	}
	var c Count
	for _, f := range fields[1 : last+1] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return Count{}, false
		}
		c.Total += n
		c.Stolen = n
	}
	return c, true
}

// Since returns which share of all time was stolen since an earlier count, and 0 when
// no time has passed.
func (c Count) Since(earlier Count) float64 {
	if c.Total <= earlier.Total {
		return 0
	}
	return max(0, c.Stolen-earlier.Stolen) / (c.Total - earlier.Total)
}
