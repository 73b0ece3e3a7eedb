// Package unlock is the command redlatch unlock: it takes a lock away from a holder that
// is dead, and writes down that it did.
//
//	look ─▶ is the lease renewed? ─▶ ask ─▶ look once more ─▶ take ─▶ audit
package unlock

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
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
	owners, dead                  []string
	reason, auditFile             string
	look                          time.Duration
	shown                         bool // the user has seen the holder
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	o := &unlockOptions{Globals: g}
	cmd := &cobra.Command{
		Use:     "unlock --force NAME",
		Short:   "Take a lock or a permit away from a holder that is dead",
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
				return cli.Usagef("--dead and --even-if-alive contradict each other: --owner and --even-if-alive take the lock from one live holder")
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
	f.StringArrayVar(&o.dead, "dead", nil, "take it from this owner, or permit, of which you know that it is dead; may be repeated")
	f.StringArrayVar(&o.owners, "owner", nil, "take it from this owner, or permit, alone; may be repeated")
	f.BoolVar(&o.evenIfAlive, "even-if-alive", false, "take it immediately, even from a live holder")
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
		u := repair.Unlock{
			Target: repair.Target{Client: client, Dial: srv.Dial}, Name: name, Owners: o.owners, Dead: o.dead,
			EvenIfAlive: o.evenIfAlive, For: o.look,
			Looks: func(limit time.Duration) { tellLook(name, limit) },
			// What is done is written down, some seconds later at most.
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

// briefLook is how long it may look at a lease without saying so.
const briefLook = 1500 * time.Millisecond

// tellLook says how long it takes to look at the lease of a lock.
func tellLook(name string, limit time.Duration) {
	if limit > briefLook {
		cli.Messagef(os.Stderr, "looking for up to %v whether the lease of lock %q is renewed, as that of a live holder is",
			limit.Round(time.Second), name)
	}
}

// confirm asks the user.
func (o *unlockOptions) confirm(f *repair.Forced) bool {
	printLock(os.Stderr, f)
	o.shown = true
	return cli.Confirm(os.Stdin, os.Stderr, question(f))
}

// exitOf gives a refusal its exit code. That a lock is free is printed as the state that was
// found.
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

// record writes the audit of a lock that was to be taken. err is how that went.
func (o *unlockOptions) record(f *repair.Forced, log *auditLog, err error) error {
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
	if unwritten := log.write(a); unwritten != nil {
		return &cli.ExitError{Code: 1, Err: errors.Join(unwritten, err)}
	}
	return err
}
