package fairsim

import (
	"time"

	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
)

// Constants of the product, as its engine uses them.
const (
	period  = 5 * time.Second
	keep    = 15 * time.Second
	grace   = liveness.DefaultGrace
	pollCap = 10 * time.Second

	fairWait  = int64(300_000)
	lease     = int64(30_000) // of holds that are renewed
	renewTime = int64(10_000)
)

// Load is what a fleet is made to do.
type Load struct {
	// Name is what the table calls it.
	Name string
	// Hold is how long the lock is held at most. Holds are spread evenly below it.
	Hold time.Duration
	// Idle is the share of the time for which the lock may be free while live waiters
	// queue, in a fleet of both kinds over a long time.
	Idle float64
	// Skew is by how much the clocks of Redlatch's processes are wrong at most, when
	// they reckon with the server's time. 0: they reckon with their own, which is
	// wrong by tens of milliseconds, as those of Java's processes always are.
	Skew time.Duration
	// Think is how many holds of the longest kind a worker does without the lock
	// between two, as a mean. 0: one, so that most of the fleet waits.
	Think float64
	// Wait is how long callers with a wait wait at most. 0: the fair wait timeout.
	Wait time.Duration
}

// Loads are the loads that the documentation shows, in its order.
var Loads = []Load{
	{Name: "10 s", Hold: 10 * time.Second, Idle: 0.08},
	{Name: "2 min", Hold: 2 * time.Minute, Idle: 0.008},
	{Name: "20 min", Hold: 20 * time.Minute, Idle: 0.002},
}

// Skewed is the load in which the clocks of Redlatch's processes are up to ten
// minutes wrong, so that they use the server's time.
var Skewed = Load{Name: "2 min, clocks 10 min wrong, server time", Hold: 2 * time.Minute, Idle: 0.008, Skew: 10 * time.Minute}

// Patient is a load in which waits are longer than the fair wait timeout, which no
// heartbeat of another process reckons with.
var Patient = Load{Name: "2 min, waits up to 30 min", Hold: 2 * time.Minute, Idle: 0.008, Wait: 30 * time.Minute}

// Light is a load in which few wait, so that newcomers are soon the first.
var Light = Load{Name: "1 s, few wait", Hold: time.Second, Idle: 0.08, Think: 20}

// Fleet is the processes that share the lock. Each process has [Workers] that wait for it
// or hold it most of the time.
type Fleet struct {
	// Redlatch and Redisson are numbers of processes.
	Redlatch, Redisson int
}

// Workers is the number of goroutines or threads of a process.
const Workers = 4

// Mixed is a fleet of both, Pure one of Redisson alone.
var (
	Mixed = Fleet{Redlatch: 3, Redisson: 3}
	Pure  = Fleet{Redisson: 6}
)

// Config is one run.
type Config struct {
	// Seed decides all that happens by chance.
	Seed uint64
	// Time is how long the fleet is watched, in its own time.
	Time time.Duration
	// Load is what the fleet does, and Fleet its processes.
	Load  Load
	Fleet Fleet
}

// Mean times between troubles of the fleet, each of a random process.
const (
	everyKill      = 60 * time.Minute // a process is killed, and started again
	everyInterrupt = 6 * time.Minute  // a thread that waits is interrupted
	everyStall     = 3 * time.Minute  // a process stands still for up to 10 s
	everyLoss      = 3 * time.Minute  // a process loses its connections
	everyBlind     = 5 * time.Minute  // a process cannot count listeners for a while
	everyRestart   = time.Hour        // the server is restarted with its data
)

// Of the acquisitions, so many in a hundred have a wait, and so many of Redlatch's
// are cancelled.
const (
	bounded   = 30 // of Redisson's, with those of the next line
	unitsBug  = 10 // of Redisson's: tryLock with a wait and without a lease
	tries     = 5  // without any wait
	leased    = 20 // with a lease of their own
	cancelled = 10
)
