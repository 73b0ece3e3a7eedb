package host

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Info contains the server's statistics.
type Info struct {
	At  time.Time
	CPU time.Duration

	commands map[string]command
	machine  machine
}

type command struct {
	calls  float64
	micros float64
}

func parseInfo(text string) Info {
	info := Info{commands: map[string]command{}}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found {
			continue
		}
		if key == "used_cpu_sys" || key == "used_cpu_user" {
			info.CPU += time.Duration(number(value) * float64(time.Second))
		}
		if name, ok := strings.CutPrefix(key, "cmdstat_"); ok {
			info.commands[name] = parseCommand(value)
		}
	}
	return info
}

func parseCommand(text string) command {
	var c command
	for field := range strings.SplitSeq(text, ",") {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "calls":
			c.calls = number(value)
		case "usec":
			c.micros = number(value)
		}
	}
	return c
}

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

// Work describes the server's work during an interval.
type Work struct {
	Lasted time.Duration
	CPU    time.Duration
	// Requests is the number of commands that clients sent. Busy is their execution time.
	Requests float64
	Busy     time.Duration
	Stolen   float64
}

// Since returns the work done between earlier and i. Only the commands in sends count as requests.
func (i Info) Since(earlier Info, sends []string) Work {
	w := Work{Lasted: i.At.Sub(earlier.At), CPU: i.CPU - earlier.CPU, Stolen: i.machine.since(earlier.machine)}
	for _, name := range sends {
		now, before := i.commands[name], earlier.commands[name]
		w.Requests += now.calls - before.calls
		w.Busy += time.Duration((now.micros - before.micros) * float64(time.Microsecond))
	}
	return w
}

type machine struct {
	stolen, total float64
}

func readMachine() machine {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machine{}
	}
	m, _ := parseMachine(string(text))
	return m
}

func parseMachine(text string) (machine, bool) {
	const last = 8 // stolen time; the guest times after it are included in user time
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

func (m machine) since(earlier machine) float64 {
	if m.total <= earlier.total {
		return 0
	}
	return max(0, m.stolen-earlier.stolen) / (m.total - earlier.total)
}
