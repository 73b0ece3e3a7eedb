package demo

import (
	"time"
)

// kind is what a worker reports.
type kind string

const (
	ready    kind = "ready"    // connected
	waiting  kind = "waiting"  // asks for the lock
	acquired kind = "acquired" // is inside, as Owner, after Wait
	found    kind = "found"    // met the marker Found while inside as Owner
	stalled  kind = "stalled"  // has read the counter and will not go on
	lost     kind = "lost"     // Owner's hold ended without being given up
	released kind = "released" // has written the counter and leaves
	failed   kind = "failed"   // cannot go on because of Text
	gone     kind = "gone"     // the process has ended; made by the parent
)

// event is one line of a worker's output.
type event struct {
	Kind  kind          `json:"kind"`
	At    time.Time     `json:"at"`
	Owner string        `json:"owner,omitempty"`
	Found string        `json:"found,omitempty"`
	Wait  time.Duration `json:"wait,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// workerConfig is the first line of a worker's input.
type workerConfig struct {
	ID     int           `json:"id"`
	Redis  string        `json:"redis"`
	Prefix string        `json:"prefix"`
	Lease  time.Duration `json:"lease"`
	Broken bool          `json:"broken"`
}

// The lines that a parent sends after the configuration.
const (
	stallOrder = "stall\n" // stand still in the next round
	stopOrder  = "stop\n"  // finish the round and end
)

// keys are the names of a run on the server.
type keys struct{ lock, counter, journal, inside string }

func keysOf(prefix string) keys {
	return keys{
		lock:    prefix + ":lock",
		counter: prefix + ":counter",
		journal: prefix + ":journal",
		inside:  prefix + ":inside",
	}
}

// keyLife, in seconds, is how long keys stay on a server if nobody removes them.
const keyLife = 600
