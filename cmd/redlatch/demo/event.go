package demo

import (
	"time"

	"github.com/redlatch/redlatch/internal/tool/connect"
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

	// Of a visit under the fair lock: its number, the job that was done, 0 when none was
	// left, and the owners in the queue then, the next one first.
	Visit int64    `json:"visit,omitempty"`
	Job   int64    `json:"job,omitempty"`
	Queue []string `json:"queue,omitempty"`
}

// workerConfig is the first line of a worker's input.
type workerConfig struct {
	ID     int              `json:"id"`
	Redis  connect.Settings `json:"redis"`
	Prefix string           `json:"prefix"`
	Lease  time.Duration    `json:"lease"`
	Broken bool             `json:"broken"`

	// Workers is how many workers of the process claim jobs; 0 is the plain lock.
	Workers int `json:"hands,omitempty"`
	// FairWait is the fair wait timeout of the process.
	FairWait time.Duration `json:"fair_wait,omitempty"`
}

// The lines that a parent sends after the configuration.
const (
	stallOrder = "stall\n" // stall in the next round
	stopOrder  = "stop\n"  // finish the round and end
)

// keyLife, in seconds, is how long keys stay on a server that the demo could not clean up.
const keyLife = 600
