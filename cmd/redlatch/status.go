package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func newStatus(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show who holds a lock, and who is queued for it",
		Long: `Shows the holders of the lock NAME, how often each has entered it, what its lease
has left, and the queue of a fair lock, all as it was at one moment. An owner is the
UUID of a client, a colon, and a number that is a thread of a Java process or an
acquisition of a Go process.

A place in the queue has a deadline: from then on, once it is the first, whoever
looks next removes it. It is told by this machine's clock. "subscribed" says whether
anybody listens for the wake-up that is meant for it, as those do who live. For that
the first 64 places are looked at.`,
		Example: `  redlatch status nightly-report
  redlatch status --json nightly-report | jq .held
  redlatch status --json billing-run | jq '.queue[] | select(.subscribed == "no")'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := ask(cmd.Context(), g.url(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(s)
			}
			s.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// ask reads the lock, all of it at one moment.
func ask(ctx context.Context, url, name string) (*status, error) {
	if err := codec.ValidateName(name); err != nil {
		return nil, err
	}
	if err := conn.Check(url); err != nil {
		return nil, err
	}
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("%s", conn.Problem(url, err))
	}
	defer func() { _ = client.Close() }() // it only asked
	in, err := inspect(ctx, client, name)
	switch {
	case errors.Is(err, redlatch.ErrWrongType):
		return nil, wrongType(ctx, url, name)
	case err != nil:
		return nil, fmt.Errorf("%s", conn.Problem(url, err))
	}
	return statusOf(in, time.Now()), nil
}

// inspect asks for a fair lock, which is a plain one with a queue: that of a plain
// lock is empty. A user who may not read queues is shown the lock alone.
func inspect(ctx context.Context, client *redlatch.Client, name string) (*rlock.Inspection, error) {
	in, err := rfairlock.New(client, name).Inspect(ctx)
	var refusal *transport.ServerError
	if errors.As(err, &refusal) && !errors.Is(err, redlatch.ErrWrongType) {
		return rlock.New(client, name).Inspect(ctx)
	}
	return in, err
}

// wrongType finds out which key holds what it should not.
func wrongType(ctx context.Context, url, name string) error {
	c, err := conn.Dial(ctx, url)
	if err != nil {
		return fmt.Errorf("%s", conn.Problem(url, err))
	}
	defer func() { _ = c.Close() }() // only read from
	for _, key := range []struct{ name, kind, what string }{
		{name, "hash", "a lock is a hash"},
		{codec.QueueKey(name), "list", "the queue of a fair lock is a list"},
		{codec.TimeoutKey(name), "zset", "the deadlines of a fair lock are a zset"},
	} {
		kind, err := redis.String(c.Do("TYPE", key.name))
		switch {
		case err != nil:
			return fmt.Errorf("%s", conn.Problem(url, err))
		case kind != "none" && kind != key.kind:
			return fmt.Errorf("the key %q holds a %s, and %s: something else uses this name", key.name, kind, key.what)
		}
	}
	return fmt.Errorf("%w: %q", redlatch.ErrWrongType, name) // it is right again by now
}
