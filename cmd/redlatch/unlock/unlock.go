// Package unlock is the command redlatch unlock: it takes a lock away from a holder that
// is dead, and writes down that it did.
//
//	look ─▶ is the lease renewed? ─▶ ask ─▶ look once more ─▶ take ─▶ audit
package unlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// The exit codes of unlock other than 0 and 1.
const (
	codeRefused = 2
	codeFree    = 3
)

// unlockOptions are the flags of unlock.
type unlockOptions struct {
	*cli.Globals
	names                         cli.Names
	force, evenIfAlive, yes, json bool
	dead                          []string
	reason, auditFile             string
	look                          time.Duration
	shown                         bool // the user has seen the holder
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	o := &unlockOptions{Globals: g}
	cmd := &cobra.Command{
		Use:     "unlock --force NAME",
		Short:   "Take a lock away from a holder that is dead",
		Long:    unlockHelp,
		Example: unlockExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !o.force:
				return cli.Errorf(codeRefused, "a lock is released by its holder, or when its lease is over; "+
					"--force takes it away from a dead holder: see redlatch unlock --help")
			case o.look <= 0:
				return cli.Usagef("--for must be more than 0s")
			case len(o.dead) > 0 && o.evenIfAlive:
				return cli.Usagef("--dead and --even-if-alive contradict each other")
			}
			args, err := o.names.Read(args...)
			if err != nil {
				return err
			}
			return o.unlock(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.force, "force", false, "take the lock away, if its holder is dead")
	f.StringArrayVar(&o.dead, "dead", nil, "a holder of which you know that it is dead; may be repeated")
	f.BoolVar(&o.evenIfAlive, "even-if-alive", false, "take the lock away at once, even from a live holder")
	f.BoolVar(&o.yes, "yes", false, "do not ask, on a terminal")
	f.StringVar(&o.reason, "reason", "", "why, for the audit")
	f.StringVar(&o.auditFile, "audit-file", "", "append the audit to this file, in JSON")
	f.DurationVar(&o.look, "for", inspect.RenewalLook, "how long to look whether the lease is renewed, at most")
	o.names.Register(cmd, "NAME is")
	f.BoolVar(&o.json, "json", false, "print JSON")
	cli.CompleteFiles(cmd, "audit-file")
	return cmd
}

// unlock is the whole of it.
func (o *unlockOptions) unlock(cmd *cobra.Command, name string) error {
	log, err := openAudit(o.auditFile)
	if err != nil {
		return err
	}
	defer log.close()
	ctx := cmd.Context()
	return cli.WithServer(ctx, o.Globals, name, func(srv *connect.Server, client *redlatch.Client) error {
		if err := cli.NeedMaster(ctx, srv); err != nil {
			return err
		}
		first, err := inspect.TakeSnapshot(ctx, client, name)
		if err != nil {
			return err
		}
		f := forcedOf(&first)
		if first.Held() && !o.evenIfAlive && f.unfit() == "" {
			f, first, err = o.examine(ctx, client, first)
			if err != nil {
				return err
			}
		}
		f.readDetails(ctx, srv)
		err = o.refusal(f)
		if err == nil {
			err = o.take(ctx, target{srv, client, &first}, f, log)
		}
		f.readNow(ctx, client)
		o.print(cmd, f)
		return err
	})
}

// briefLook is how long it may look at a lease without saying so.
const briefLook = 1500 * time.Millisecond

// examine looks whether the holder lives.
func (o *unlockOptions) examine(ctx context.Context, client *redlatch.Client, first inspect.Snapshot) (*forced, inspect.Snapshot, error) {
	if limit := min(o.look, inspect.RenewalDue(first.Inspection.TTL)); limit > briefLook {
		output.Messagef(os.Stderr, "looking for up to %v whether the lease of lock %q is renewed, as that of a live holder is",
			limit.Round(time.Second), first.Inspection.Name)
	}
	renewed, last, err := inspect.WatchRenewal(ctx, client, first, o.look)
	if err != nil {
		return nil, first, err
	}
	f := forcedOf(&last)
	if f.Renewed = renewed; last.Held() && !first.SameHolders(&last) {
		f.changed = true
	}
	return f, last, nil
}

// refusal says why the lock is not taken, nil when it may be.
func (o *unlockOptions) refusal(f *forced) error {
	if why := f.unfit(); why != "" {
		return f.refuse(codeRefused, refusedKind, "%s. It is left alone", why)
	}
	switch {
	case len(f.Holders) == 0:
		return f.isFree()
	case o.evenIfAlive:
		return nil
	case f.changed:
		return f.refuse(codeRefused, refusedChanged, "lock %q changes hands: it is not stuck", f.Name)
	case f.Renewed == inspect.RenewedYes:
		return f.refuse(codeRefused, refusedAlive, "lock %q: its holder is alive, its lease was renewed just now. "+
			"--even-if-alive takes the lock all the same", f.Name)
	}
	return o.doubt(f)
}

// doubt says which holders may live, nil when all are stated to be dead, or are readers whose own
// lease is over. One at least is stated: a lock is not taken without that.
func (o *unlockOptions) doubt(f *forced) error {
	alive := f.alive(o.dead)
	switch {
	case len(o.dead) == 0:
		if len(alive) == 0 {
			alive = []string{f.Holders[0].Owner}
		}
		of, they := "its holder is", "it is"
		if len(alive) > 1 {
			of, they = "its holders are", "they are"
		}
		return f.refuse(codeRefused, refusedUnknown, "lock %q: %s not known to be dead: %s. If you know that %s dead: %s. "+
			"--even-if-alive takes the lock in any case", f.Name, of, f.whyUnknown(), they, stated(alive))
	case !f.isHeldBy(o.dead):
		return f.refuse(codeRefused, refusedOther, "lock %q is not held by %s", f.Name, words(o.dead, " or "))
	case len(alive) > 0:
		return f.refuse(codeRefused, refusedOther, "lock %q has other holders, too. If you know that they are dead as well, add %s",
			f.Name, stated(alive))
	}
	return nil
}

// target is a lock that is to be taken, as it was seen.
type target struct {
	srv    *connect.Server
	client *redlatch.Client
	seen   *inspect.Snapshot
}

// take asks the user, where there is one, looks once more, and takes the lock.
func (o *unlockOptions) take(ctx context.Context, t target, f *forced, log *auditLog) error {
	if !o.yes && term.IsTerminal(int(os.Stdin.Fd())) {
		f.print(os.Stderr)
		o.shown = true
		if !cli.Confirm(os.Stdin, os.Stderr, fmt.Sprintf("Take lock %q away from this holder?", f.Name)) {
			return f.refuse(codeRefused, refusedDeclined, "lock %q was not taken", f.Name)
		}
	}
	// Confirmation and audit took time since the last look, and the script that takes the
	// lock does not compare holders.
	now, err := inspect.TakeSnapshot(ctx, t.client, f.Name)
	if err != nil {
		return err
	}
	switch {
	case !now.Held(), o.evenIfAlive && !o.shown: // the taking finds out
	case !t.seen.SameHolders(&now):
		return f.refuse(codeRefused, refusedChanged, "lock %q has changed hands meanwhile, and was not taken", f.Name)
	case !o.evenIfAlive && t.seen.RenewedBy(&now):
		f.Renewed = inspect.RenewedYes
		return f.refuse(codeRefused, refusedAlive, "lock %q: its holder is alive, its lease was renewed just now", f.Name)
	}
	newLock := rlock.New
	switch {
	case f.shape.Mode == codec.ModeRead:
		newLock = reading
	case f.shape.Mode == codec.ModeWrite:
		newLock = writing
	case now.ReadQueue() && now.Inspection.Waiting > 0:
		newLock = rfairlock.New
	}
	heard := hearingOf(ctx, t.srv, t.client, &now, f.shape.Mode)
	held, err := newLock(t.client, f.Name).ForceUnlock(ctx)
	if f.Taken = held && err == nil; f.Taken {
		f.Notified, f.Subscribers, f.heard = heard.notified, heard.subscribers, heard
	}
	return o.record(f, log, err)
}

func reading(c *redlatch.Client, name string) *rlock.Lock { return rreadwritelock.New(c, name).Read() }
func writing(c *redlatch.Client, name string) *rlock.Lock { return rreadwritelock.New(c, name).Write() }

// record writes the audit. err is how the taking went.
func (o *unlockOptions) record(f *forced, log *auditLog, err error) error {
	a := &audit{
		Time: time.Now().UTC().Truncate(time.Second), Action: "unlock --force", Server: o.Target(), forced: *f,
		EvenIfAlive: o.evenIfAlive, Reason: o.reason, Outcome: outcomeTaken,
	}
	a.By, a.Host = whoami()
	switch {
	case err != nil:
		a.Outcome = strings.ReplaceAll(err.Error(), "\n", "; ")
	case !f.Taken:
		a.Outcome = outcomeFree
		err = f.isFree()
	}
	if unwritten := log.write(a); unwritten != nil {
		return &cli.ExitError{Code: 1, Err: errors.Join(unwritten, err)}
	}
	return err
}
