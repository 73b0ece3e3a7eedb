package hold

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	defaultLease  = 30 * time.Second
	maxExitStatus = 255
	// maxPermits is Java's limit.
	maxPermits = 1<<31 - 1
)

// lockFlags select the lock and how to acquire it. Commands run and hold share them.
type lockFlags struct {
	*cli.Globals

	lease    time.Duration // fixed lease; 0 for a renewed one
	watchdog time.Duration // renewed lease
	maxHold  time.Duration // 0 for no limit
	atLeast  time.Duration // 0 for no minimum
	wait     time.Duration
	try      bool
	conflict int // exit code if the lock was not acquired

	fair, fenced, read, write bool
	permits                   string // NAME:N, "" for a lock

	bounded bool // --wait was given
	// The parts of permits.
	semaphore string
	count     int
}

// register adds the flags. Some differ for run, which has a command.
func (o *lockFlags) register(f *pflag.FlagSet, command bool) {
	of := func(run, hold string) string {
		if command {
			return run
		}
		return hold
	}
	f.DurationVar(&o.wait, "wait", 0, "give up when the lock is not free within this time (default: wait for ever)")
	f.BoolVar(&o.try, "try", false, "give up at once when the lock is held")
	f.BoolVar(&o.fair, "fair", false, "take the fair lock of this name: waiters are served in the order of arrival, as with getFairLock in Java")
	f.BoolVar(&o.fenced, "fenced", false, "take the lock with a fencing token, as with getFencedLock in Java: "+
		of("COMMAND finds it in REDLATCH_TOKEN", "it is the second line, or in REDLATCH_TOKEN"))
	f.BoolVar(&o.read, "read", false, "take the read/write lock of this name as a reader: several hold it together, as with getReadWriteLock in Java")
	f.BoolVar(&o.write, "write", false, "take the read/write lock of this name as the writer, alone")
	f.StringVar(&o.permits, "permits", "", "in place of a lock, take one of the N permits of the semaphore NAME, as with getPermitExpirableSemaphore in Java"+
		of(": N commands run at a time, on all machines together", ""))
	f.DurationVar(&o.lease, "lease", 0, "hold the lock for this long at most"+of("; COMMAND is ended before it is over", ": it is lost before that is over"))
	f.DurationVar(&o.watchdog, "watchdog", defaultLease,
		"renewed lease, when there is no --lease: how long the lock stays when this machine dies; equal to lockWatchdogTimeout in Java")
	f.DurationVar(&o.maxHold, "max-hold", 0, of("end COMMAND when it has held the lock for this long, however well the lease is renewed",
		"free the lock when it was held for this long, however well the lease is renewed, and exit as after a loss"))
	f.DurationVar(&o.atLeast, "at-least", 0, of("keep the lock for this long from when it was acquired, also when COMMAND is done sooner",
		"leave the lock for this long from when it was acquired, also when it is released sooner"))
	f.IntVar(&o.conflict, "conflict-exit-code", cli.CodeConflict, "exit code when the lock was not acquired")
}

func (o *lockFlags) check(cmd *cobra.Command) error {
	if why := o.wrong(cmd.Flags().Changed); why != "" {
		return errors.New(why)
	}
	return nil
}

// wrong describes the error in the flags, "" for nothing. changed reports whether a flag was
// given.
func (o *lockFlags) wrong(changed func(string) bool) string {
	o.bounded = changed("wait")
	switch {
	case o.try && o.bounded:
		return "--try and --wait contradict each other"
	case o.read && o.write, (o.read || o.write) && (o.fair || o.fenced):
		return "--read, --write and --fair or --fenced contradict each other: a name is that of one kind of lock"
	case changed("lease") && changed("watchdog"):
		return "--lease and --watchdog contradict each other"
	case changed("lease") && o.lease < time.Millisecond:
		return "--lease must be at least 1ms"
	case o.watchdog < limits.LeastRenewed:
		return "--watchdog must be at least " + limits.LeastRenewed.String()
	case max(o.lease, o.watchdog) > limits.Max:
		return "--lease and --watchdog must be at most " + limits.Max.String()
	case o.wait != 0 && o.wait < time.Millisecond:
		return "--wait must be 0 or at least 1ms"
	case changed("max-hold") && o.maxHold < time.Millisecond:
		return "--max-hold must be at least 1ms"
	case changed("lease") && changed("max-hold"):
		return "--lease and --max-hold contradict each other: a lease of its own is a maximum, too"
	}
	if changed("permits") {
		if why := o.wrongPermits(changed); why != "" {
			return why
		}
	}
	return o.wrongAtLeast(changed)
}

// wrongPermits parses and checks --permits. The name may contain colons.
func (o *lockFlags) wrongPermits(changed func(string) bool) string {
	switch {
	case o.fair, o.fenced, o.read, o.write:
		return "--permits and --fair, --fenced, --read or --write contradict each other: a name is that of a lock or of a semaphore"
	case changed("at-least"):
		return "--permits and --at-least contradict each other: a permit comes back as soon as it is not used"
	}
	i := strings.LastIndexByte(o.permits, ':')
	n, err := strconv.Atoi(o.permits[i+1:])
	if i < 1 || err != nil || n < 1 || n > maxPermits {
		return "--permits must be NAME:N, such as crawl:5, with N from 1 to " + strconv.Itoa(maxPermits) + ", not " + strconv.Quote(o.permits)
	}
	o.semaphore, o.count = o.permits[:i], n
	return ""
}

// wrongAtLeast checks --at-least and --conflict-exit-code.
func (o *lockFlags) wrongAtLeast(changed func(string) bool) string {
	switch {
	case o.atLeast < 0:
		return "--at-least must not be negative"
	case o.atLeast > limits.Max:
		return "--at-least must be at most " + limits.Max.String()
	case changed("lease") && changed("at-least"):
		return "--lease and --at-least contradict each other: --max-hold is a bound for a renewed lease"
	case changed("max-hold") && o.atLeast > o.maxHold:
		return "--at-least is longer than --max-hold"
	case o.conflict < 0 || o.conflict > maxExitStatus:
		return "--conflict-exit-code must be from 0 to " + strconv.Itoa(maxExitStatus)
	}
	return ""
}

func (o *lockFlags) name(args []string) string {
	if o.permits != "" {
		return o.semaphore
	}
	return args[0]
}

// names returns how many arguments are names, and describes the error in args, "" for nothing.
func names(cmd *cobra.Command, args []string) (n int, wrong string) {
	switch {
	case !cmd.Flags().Changed("permits"):
		return 1, ""
	case len(args) > 0:
		wrong = "--permits NAME:N stands in place of NAME: leave " + sanitize.Word(args[0]) + " out"
	}
	return 0, wrong
}
