package holding

import (
	"time"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

const (
	// CodeFailed is the exit code of a command that failed for reasons of its own, or whose lock
	// was lost.
	CodeFailed = 125
	// CodeConflict is the exit code when the lock was not acquired, unless a flag says otherwise.
	CodeConflict = 124

	defaultLease  = 30 * time.Second
	maxExitStatus = 255
)

// Options are the flags that say which lock is taken, and how.
type Options struct {
	*cli.Globals

	// Lease is how long the lock is held without renewal, 0 for a lease that is renewed.
	Lease time.Duration
	// Watchdog is the renewed lease.
	Watchdog time.Duration
	// MaxHold bounds how long the lock is held, 0 for no bound.
	MaxHold time.Duration
	// AtLeast is how long the lock stays from when it was acquired, 0 for as long as it is used.
	AtLeast time.Duration
	// Wait is how long the lock is waited for, when the flag is given.
	Wait time.Duration
	// Try says that the lock is not waited for.
	Try bool
	// Fair, Fenced, Read and Write say of which kind the lock is.
	Fair, Fenced, Read, Write bool
	// Permits is NAME:N, "" for a lock.
	Permits string
	// Conflict is the exit code when the lock was not acquired.
	Conflict int

	bounded bool    // Wait is given
	of      permits // Permits, parsed
}

// Flags is what Options need of the flags of a command.
type Flags interface {
	// BoolVar adds a flag that is true or false.
	BoolVar(to *bool, name string, value bool, usage string)
	// DurationVar adds a flag that is a time.
	DurationVar(to *time.Duration, name string, value time.Duration, usage string)
	// IntVar adds a flag that is a number.
	IntVar(to *int, name string, value int, usage string)
	// StringVar adds a flag that is a text.
	StringVar(to *string, name, value, usage string)
}

// Register adds the flags.
func (o *Options) Register(f Flags) {
	f.DurationVar(&o.Wait, "wait", 0, "give up when the lock is not free within this time (default: wait for ever)")
	f.BoolVar(&o.Try, "try", false, "give up at once when the lock is held")
	f.BoolVar(&o.Fair, "fair", false, "take the fair lock of this name: waiters are served in the order of arrival, as with getFairLock in Java")
	f.BoolVar(&o.Fenced, "fenced", false, "take the lock with a fencing token, as with getFencedLock in Java: COMMAND finds it in REDLATCH_TOKEN")
	f.BoolVar(&o.Read, "read", false, "take the read/write lock of this name as a reader: several hold it together, as with getReadWriteLock in Java")
	f.BoolVar(&o.Write, "write", false, "take the read/write lock of this name as the writer, alone")
	f.StringVar(&o.Permits, "permits", "", "in place of a lock, take one of the N permits of the semaphore NAME, as with getPermitExpirableSemaphore in Java: N commands run at a time, on all machines together")
	f.DurationVar(&o.Lease, "lease", 0, "hold the lock for this long at most; COMMAND is ended before it is over")
	f.DurationVar(&o.Watchdog, "watchdog", defaultLease,
		"renewed lease, when there is no --lease: how long the lock stays when this machine dies; equal to lockWatchdogTimeout in Java")
	f.DurationVar(&o.MaxHold, "max-hold", 0, "end COMMAND when it has held the lock for this long, however well the lease is renewed")
	f.DurationVar(&o.AtLeast, "at-least", 0, "keep the lock for this long from when it was acquired, also when COMMAND is done sooner")
	f.IntVar(&o.Conflict, "conflict-exit-code", CodeConflict, "exit code when the lock was not acquired")
}

// Check refuses flags that make no sense. changed says which were given. An error is an
// ExitError.
func (o *Options) Check(changed func(string) bool) error {
	o.bounded = changed("wait")
	switch {
	case o.Try && o.bounded:
		return cli.Errorf(CodeFailed, "--try and --wait contradict each other")
	case o.Read && o.Write, (o.Read || o.Write) && (o.Fair || o.Fenced):
		return cli.Errorf(CodeFailed, "--read, --write and --fair or --fenced contradict each other: a name is that of one kind of lock")
	case changed("lease") && changed("watchdog"):
		return cli.Errorf(CodeFailed, "--lease and --watchdog contradict each other")
	case changed("lease") && o.Lease < time.Millisecond:
		return cli.Errorf(CodeFailed, "--lease must be at least 1ms")
	case o.Watchdog < limits.LeastRenewed:
		return cli.Errorf(CodeFailed, "--watchdog must be at least %v", limits.LeastRenewed)
	case max(o.Lease, o.Watchdog) > limits.Max:
		return cli.Errorf(CodeFailed, "--lease and --watchdog must be at most %v", limits.Max)
	case o.Wait != 0 && o.Wait < time.Millisecond:
		return cli.Errorf(CodeFailed, "--wait must be 0 or at least 1ms")
	case changed("max-hold") && o.MaxHold < time.Millisecond:
		return cli.Errorf(CodeFailed, "--max-hold must be at least 1ms")
	case changed("lease") && changed("max-hold"):
		return cli.Errorf(CodeFailed, "--lease and --max-hold contradict each other: a lease of its own is a maximum, too")
	}
	if changed("permits") {
		if err := o.checkPermits(changed); err != nil {
			return err
		}
	}
	return o.checkAtLeast(changed)
}

// checkAtLeast is Check for the rest.
func (o *Options) checkAtLeast(changed func(string) bool) error {
	switch {
	case o.AtLeast < 0:
		return cli.Errorf(CodeFailed, "--at-least must not be negative")
	case o.AtLeast > limits.Max:
		return cli.Errorf(CodeFailed, "--at-least must be at most %v", limits.Max)
	case changed("lease") && changed("at-least"):
		return cli.Errorf(CodeFailed, "--lease and --at-least contradict each other: --max-hold is a bound for a renewed lease")
	case changed("max-hold") && o.AtLeast > o.MaxHold:
		return cli.Errorf(CodeFailed, "--at-least is longer than --max-hold")
	case o.Conflict < 0 || o.Conflict > maxExitStatus:
		return cli.Errorf(CodeFailed, "--conflict-exit-code must be from 0 to %d", maxExitStatus)
	}
	return nil
}

// Name returns the name that is taken: that of --permits, or else the argument.
func (o *Options) Name(args []string) string {
	if o.Permits != "" {
		return o.of.name
	}
	return args[0]
}

// Margin returns how long before the end of a lease its hold has to end for a command to be ended
// in time: a tenth of the lease, at most 1 s.
func Margin(lease time.Duration) time.Duration { return min(lease/10, time.Second) }

// Margin returns how long before the end of the lease the hold ends: by then what uses the lock
// must be on its way out.
func (o *Options) Margin() time.Duration {
	if o.Lease > 0 {
		return Margin(o.Lease)
	}
	return Margin(o.Watchdog)
}
