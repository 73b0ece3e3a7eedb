package force

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

const (
	codeRefused = 2
	codeFree    = 3
)

type unlockOptions struct {
	*cli.Globals
	names                   cli.Names
	format                  cli.Output
	force, evenIfAlive, yes bool
	owners, dead            []string
	reason, auditFile       string
	look                    time.Duration
	shown                   bool // the user has already seen the holder
}

// NewUnlock returns the command unlock.
func NewUnlock(g *cli.Globals) *cobra.Command {
	o := &unlockOptions{Globals: g}
	cmd := &cobra.Command{
		Use:     "unlock --force NAME",
		Short:   "Release the lock or permit of a dead holder",
		Long:    unlockHelp,
		Example: unlockExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !o.force:
				return cli.Errorf(codeRefused, "a lock is normally released by its holder, or when its lease expires; "+
					"--force releases the lock of a dead holder: see redlatch unlock --help")
			case o.look <= 0:
				return cli.Usagef("--for must be more than 0s")
			case len(o.dead) > 0 && o.evenIfAlive:
				return cli.Usagef("--dead and --even-if-alive are mutually exclusive: to release the lock of one live holder, use --owner and --even-if-alive")
			}
			args, err := o.names.Read(args...)
			if err != nil {
				return err
			}
			return o.unlock(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.force, "force", false, "release the lock if its holder is dead")
	f.StringArrayVar(&o.dead, "dead", nil, "owner or permit that you know to be dead; may be repeated")
	f.StringArrayVar(&o.owners, "owner", nil, "release only this owner or permit; may be repeated")
	f.BoolVar(&o.evenIfAlive, "even-if-alive", false, "release it immediately, even from a live holder")
	f.BoolVar(&o.yes, "yes", false, "do not prompt for confirmation")
	f.StringVar(&o.reason, "reason", "", "reason, for the audit")
	f.StringVar(&o.auditFile, "audit-file", "", "append the audit to this file, in JSON")
	f.DurationVar(&o.look, "for", inspect.RenewalLook, "maximum time to wait for a renewal, which is due after a third of the lease")
	o.names.Register(cmd, "NAME is")
	o.format.Register(cmd, "")
	cli.CompleteFiles(cmd, "audit-file")
	return cmd
}

func (o *unlockOptions) unlock(cmd *cobra.Command, name string) error {
	log, err := openAudit(o.auditFile)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // log is nil without a file
	ctx := cmd.Context()
	return cli.OnMaster(ctx, o.Globals, name, func(t repair.Target) error {
		u := repair.Unlock{
			Target: t, Name: name, Owners: o.owners, Dead: o.dead, EvenIfAlive: o.evenIfAlive, For: o.look,
			Looks: func(limit time.Duration) {
				if limit > briefLook {
					cli.Messagef(os.Stderr, "waiting up to %v for a renewal of the lease of lock %q",
						limit.Round(time.Second), name)
				}
			},
			// The audit must be written, which takes a few seconds at most.
			Takes: func() { signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) },
		}
		if !o.yes && term.IsTerminal(int(os.Stdin.Fd())) {
			u.Confirm = o.confirm
		}
		f, err := u.Run(ctx)
		if f == nil {
			return err
		}
		err = o.record(f, log, exitOf(err))
		o.print(cmd, f)
		return err
	})
}

// briefLook is the longest time to watch a lease without announcing it.
const briefLook = 1500 * time.Millisecond

func (o *unlockOptions) confirm(f *repair.Forced) bool {
	printLock(os.Stderr, f)
	fmt.Fprint(os.Stderr, cli.Indented("server", o.Named()))
	o.shown = true
	return cli.Confirm(os.Stdin, os.Stderr, question(f))
}

func exitOf(err error) error {
	var refused *repair.Refusal
	switch {
	case repair.IsFree(err):
		return &cli.ExitError{Code: codeFree}
	case errors.As(err, &refused):
		return &cli.ExitError{Code: codeRefused, Err: refused}
	}
	return err
}

func (o *unlockOptions) record(f *repair.Forced, log *os.File, err error) error {
	if !f.Tried {
		return err
	}
	a := &audit{
		Time: time.Now().UTC().Truncate(time.Second), Action: "unlock --force", Server: o.Target(), Forced: *f,
		EvenIfAlive: o.evenIfAlive, Reason: o.reason, Outcome: outcomeTaken,
	}
	a.By, a.Host = whoami()
	switch {
	case f.Refused == repair.RefusedFree:
		a.Outcome = outcomeFree
	case err != nil:
		a.Outcome = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if unwritten := a.write(log); unwritten != nil {
		return &cli.ExitError{Code: 1, Err: errors.Join(unwritten, err)}
	}
	return err
}

const unlockHelp = `Releases the lock NAME on behalf of a dead holder and notifies the waiters. You
must state that the holder is dead. --force alone shows the holders and whether
each of them renews its lease.

  alive      the lease was renewed, as a watchdog does after each third of it.
             The lock is kept.
  not known  no renewal was seen within --for. The holder may be dead,
             disconnected, or working under a fixed lease, which is never
             renewed, or under a lease over two minutes, which may not have
             been due; the server cannot distinguish these. The lock is kept.
  dead       no renewal was seen, and you have checked the process:
             --dead OWNER states this. If OWNER still holds the lock, it is
             released as by OWNER's own unlock.

Each reader of a read/write lock is judged by its own lease, and only the named
readers lose the lock. A live reader of Redisson before 4.4 also renews the
leases of dead readers; they look alive until it leaves.

For a semaphore whose permits have IDs, OWNER is the ID of a permit, as shown
by redlatch status. The permit is released as by its holder.

--even-if-alive releases the lock immediately, even from a live holder: with
--owner OWNER from that holder, otherwise from all holders, like Redisson's
forceUnlock. A live holder notices at its next renewal, one third of its lease
later; until then, two holders may be working. A holder with a fixed lease
never notices. A dead holder's lock is free when its lease expires, so it is
usually better to wait.

On a terminal, the command prompts for confirmation unless --yes is given. Each
release writes a line to standard error and a JSON line to --audit-file. The
output shows who holds the lock afterwards. If the user cannot read the queue
of a fair lock, no waiter is notified, and the output says so.

Exit codes:
  0  the lock was released
  1  the command failed
  2  not released: its holder is alive or not known to be dead, you answered
     no, the server is a replica, or the command line or the address is invalid
  3  the lock is free`

const unlockExamples = `  # Show the holders and whether they are alive
  redlatch unlock --force nightly-report

  # You checked the process, and it is gone
  redlatch unlock --force --dead 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57 \
    --reason "host was shut down, ticket 4711" nightly-report

  # Two readers that are gone; the others keep the lock
  redlatch unlock --force --dead 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57 \
    --dead 0193e6c0-6f00-7000-8000-0000000000aa:2 books

  # One reader, dead or not
  redlatch unlock --force --even-if-alive \
    --owner 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57 books

  # A semaphore permit whose holder is gone
  redlatch unlock --force --dead 6f1d3c1a0b9e4c7f8a52f4e07b3d9c11 downloads

  # Release immediately, even from a live holder
  redlatch unlock --force --even-if-alive --yes \
    --audit-file /var/log/redlatch.jsonl nightly-report`

const (
	outcomeTaken = "taken"
	outcomeFree  = "free"
)

type audit struct {
	Time   time.Time `json:"time"`
	By     string    `json:"by"`
	Host   string    `json:"host"`
	Action string    `json:"action"`
	Server string    `json:"server"`
	repair.Forced
	EvenIfAlive bool   `json:"even_if_alive"`
	Reason      string `json:"reason"`
	// Outcome is "taken", "free" if the lock was already free, or an error message.
	Outcome string `json:"outcome"`
}

// String returns the audit line.
func (a *audit) String() string {
	what := "took " + subject(&a.Forced)
	if a.Outcome != outcomeTaken {
		what = fmt.Sprintf("tried to take %s (%s)", subject(&a.Forced), a.Outcome)
	}
	reason := "no reason given"
	if a.Reason != "" {
		reason = fmt.Sprintf("reason %q", a.Reason)
	}
	return fmt.Sprintf("audit: %s %s@%s %s on %s from %s; %s",
		a.Time.Format(time.RFC3339), a.By, a.Host, what, a.Server, describe(&a.Forced), reason)
}

// openAudit must be called before anything is done.
func openAudit(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the user specifies the file
	if err != nil {
		return nil, fmt.Errorf("--audit-file: %w; nothing was done", err)
	}
	return f, nil
}

func (a *audit) write(file *os.File) error {
	cli.Messagef(os.Stderr, "%s", a)
	if file == nil {
		return nil
	}
	line, err := json.Marshal(a)
	if err == nil {
		_, err = file.Write(append(line, '\n')) // a single write, because other processes may also append
	}
	if err != nil {
		return fmt.Errorf("the audit file was not written: %w", err)
	}
	return nil
}

func whoami() (name, host string) {
	name = fmt.Sprint("uid ", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" && sudo != name {
		name += " (sudo by " + strings.ToValidUTF8(sudo, "?") + ")"
	}
	if host, _ = os.Hostname(); host == "" {
		host = "unknown"
	}
	return name, host
}
