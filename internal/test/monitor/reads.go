package monitor

import (
	"strconv"
	"strings"
)

// LongestRead returns the most places of lists and sorted sets, of n members each, that one command
// reads with LRANGE or ZRANGE, and the command. A script reads what its commands read together.
func LongestRead(lines []Line, n int) (most int, by Line) {
	read, sent := 0, Line{}
	for _, line := range lines {
		if !line.FromScript() {
			read, sent = 0, line
		}
		if read += places(line.Args, n); read > most {
			most, by = read, sent
		}
	}
	return most, by
}

// places returns how many places a command reads.
func places(args []string, n int) int {
	name := strings.ToUpper(args[0])
	if name != "LRANGE" && name != "ZRANGE" || len(args) < 4 {
		return 0
	}
	first, err := strconv.Atoi(args[2])
	if err != nil {
		return n
	}
	last, err := strconv.Atoi(args[3])
	if err != nil {
		return n
	}
	if first < 0 {
		first = max(0, first+n)
	}
	if last < 0 {
		last += n
	}
	return max(0, min(last, n-1)-first+1)
}
