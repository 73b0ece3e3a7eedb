package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Info is what the server says of its work since it was started.
type Info struct {
	// At is when it was asked.
	At time.Time
	// CPU is the processor time that it used.
	CPU time.Duration
	// Version is that of the server.
	Version string

	commands map[string]command
	pid      int
	machine  machine
}

type command struct {
	calls  float64
	micros float64
}

// Info asks the server.
func (s *Server) Info() (Info, error) {
	now := time.Now()
	text, err := redis.String(s.conn.Do("INFO", "everything"))
	if err != nil {
		return Info{}, err
	}
	info := parseInfo(text)
	info.At = now
	info.machine = readMachine()
	if len(info.commands) == 0 && info.pid == 0 {
		return Info{}, fmt.Errorf("INFO says nothing: %.80q", text)
	}
	return info, nil
}

func parseInfo(text string) Info {
	info := Info{commands: map[string]command{}}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found {
			continue
		}
		switch key {
		case "used_cpu_sys", "used_cpu_user":
			info.CPU += time.Duration(number(value) * float64(time.Second))
		case "redis_version":
			info.Version = value
		case "process_id":
			info.pid = int(number(value))
		}
		if name, ok := strings.CutPrefix(key, "cmdstat_"); ok {
			info.commands[name] = parseCommand(value)
		}
	}
	return info
}

// parseCommand reads calls=…,usec=…,usec_per_call=….
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

// number reads what the server printed, 0 if that is no number.
func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

// Work is what the server did in a time.
type Work struct {
	// Lasted is how long that was.
	Lasted time.Duration
	// CPU is the processor time that it used.
	CPU time.Duration
	// Requests are the commands that clients sent, Busy the time that it took to
	// carry them out, with all that their scripts called.
	Requests float64
	// Busy is described above.
	Busy time.Duration
	// Stolen is which share of all processors' time the machine's host had.
	Stolen float64
}

// Since returns the work done since earlier, counting as requests the commands that
// sends names: scripts must not call those.
func (i Info) Since(earlier Info, sends []string) Work {
	w := Work{Lasted: i.At.Sub(earlier.At), CPU: i.CPU - earlier.CPU, Stolen: i.machine.since(earlier.machine)}
	for _, name := range sends {
		now, before := i.commands[name], earlier.commands[name]
		w.Requests += now.calls - before.calls
		w.Busy += time.Duration((now.micros - before.micros) * float64(time.Microsecond))
	}
	return w
}

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
