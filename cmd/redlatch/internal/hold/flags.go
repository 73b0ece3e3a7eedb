package hold

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	defaultLease  = 30 * time.Second
	maxExitStatus = 255
	// maxPermits is the limit in Java.
	maxPermits = 1<<31 - 1
)

type lockFlags struct {
	*cli.Globals

	lease    time.Duration // fixed lease, or 0 if the lease is renewed
	watchdog time.Duration // length of a renewed lease
	maxHold  time.Duration // 0 means no limit
	atLeast  time.Duration // 0 means no minimum
	wait     time.Duration
	try      bool
	conflict int // exit code if the lock was not acquired

	fair, fenced, read, write bool
	permits                   string // NAME:N, or "" for a lock
	label                     string

	bounded bool     // --wait was given
	labeled bool     // --label was given
	program []string // used as the label's program without --label
	// semaphore and count are the parts of permits.
	semaphore string
	count     int
}

func (o *lockFlags) register(f *pflag.FlagSet, command bool) {
	of := func(run, hold string) string {
		if command {
			return run
		}
		return hold
	}
	f.DurationVar(&o.wait, "wait", 0, "give up if the lock is not acquired within this time (default: wait forever)")
	f.BoolVar(&o.try, "try", false, "give up immediately if the lock is held")
	f.BoolVar(&o.fair, "fair", false, "acquire the fair lock of this name: waiters acquire it in arrival order, like getFairLock in Java")
	f.BoolVar(&o.fenced, "fenced", false, "acquire the lock with a fencing token, like getFencedLock in Java: "+
		of("COMMAND finds it in REDLATCH_TOKEN", "it is printed on the second line, or is in REDLATCH_TOKEN"))
	f.BoolVar(&o.read, "read", false, "acquire the read/write lock of this name as a reader, shared with other readers, like getReadWriteLock in Java")
	f.BoolVar(&o.write, "write", false, "acquire the read/write lock of this name as the writer, exclusively")
	f.StringVar(&o.permits, "permits", "", "instead of a lock, acquire one of the N permits of the semaphore NAME, like getPermitExpirableSemaphore in Java"+
		of(": N commands run concurrently on all machines", ""))
	f.DurationVar(&o.lease, "lease", 0, "hold the lock for at most this time"+of("; COMMAND is stopped before it expires", ": it is lost before the lease expires"))
	f.DurationVar(&o.watchdog, "watchdog", defaultLease,
		"renewed lease, used without --lease: how long the lock remains if this machine dies; equal to lockWatchdogTimeout in Java")
	f.DurationVar(&o.maxHold, "max-hold", 0, of("stop COMMAND when it has held the lock for this time, even if the lease is renewed",
		"release the lock when it was held for this time, even if the lease is renewed, and exit as after a loss"))
	f.DurationVar(&o.atLeast, "at-least", 0, of("keep the lock for at least this time after it was acquired, even if COMMAND exits sooner",
		"keep the lock for at least this time after it was acquired, even if it is released sooner"))
	f.StringVar(&o.label, "label", "", "text that shows operators who holds the lock, '' for none (default: "+
		of("COMMAND", `"redlatch hold"`)+", the host and redlatch's process ID)")
	f.IntVar(&o.conflict, "conflict-exit-code", cli.CodeConflict, "exit code if the lock was not acquired")
}

func (o *lockFlags) check(cmd *cobra.Command) error {
	if why := o.wrong(cmd.Flags().Changed); why != "" {
		return errors.New(why)
	}
	return nil
}

// wrong describes an error in the flags, or returns "".
func (o *lockFlags) wrong(changed func(string) bool) string {
	o.bounded, o.labeled = changed("wait"), changed("label")
	wrongLabel := engine.CheckLabel(o.label)
	switch {
	case wrongLabel != nil:
		return "--label: " + wrongLabel.Error()
	case o.try && o.bounded:
		return "--try and --wait are mutually exclusive"
	case o.read && o.write, (o.read || o.write) && (o.fair || o.fenced):
		return "--read, --write and --fair or --fenced are mutually exclusive: each name has one kind of lock"
	case changed("lease") && changed("watchdog"):
		return "--lease and --watchdog are mutually exclusive"
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
		return "--lease and --max-hold are mutually exclusive: a fixed lease is also a maximum"
	}
	if changed("permits") {
		if why := o.wrongPermits(changed); why != "" {
			return why
		}
	}
	return o.wrongAtLeast(changed)
}

// wrongPermits allows colons in the name in --permits.
func (o *lockFlags) wrongPermits(changed func(string) bool) string {
	switch {
	case o.fair, o.fenced, o.read, o.write:
		return "--permits and --fair, --fenced, --read or --write are mutually exclusive: a name is either a lock or a semaphore"
	case changed("at-least"):
		return "--permits and --at-least are mutually exclusive: a permit is always released after use"
	}
	i := strings.LastIndexByte(o.permits, ':')
	n, err := strconv.Atoi(o.permits[i+1:])
	if i < 1 || err != nil || n < 1 || n > maxPermits {
		return "--permits must be NAME:N, such as crawl:5, with N from 1 to " + strconv.Itoa(maxPermits) + ", not " + strconv.Quote(o.permits)
	}
	o.semaphore, o.count = o.permits[:i], n
	return ""
}

func (o *lockFlags) wrongAtLeast(changed func(string) bool) string {
	switch {
	case o.atLeast < 0:
		return "--at-least must not be negative"
	case o.atLeast > limits.Max:
		return "--at-least must be at most " + limits.Max.String()
	case changed("lease") && changed("at-least"):
		return "--lease and --at-least are mutually exclusive: use --max-hold to bound a renewed lease"
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

func names(cmd *cobra.Command, args []string) (n int, wrong string) {
	switch {
	case !cmd.Flags().Changed("permits"):
		return 1, ""
	case len(args) > 0:
		wrong = "--permits NAME:N replaces NAME: remove " + sanitize.Word(args[0])
	}
	return 0, wrong
}
