package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/codec"
)

// status is what a lock's key says.
type status struct {
	Name    string   `json:"name"`
	Held    bool     `json:"held"`
	Holders []holder `json:"holders"`
	// TTLMillis is what the lease has left, nil when the lock is free or has none.
	TTLMillis *int64 `json:"ttl_ms"`
}

// holder is one field of the lock's hash. Other kinds of locks, and other
// programs, have other fields: they are shown as they are.
type holder struct {
	Owner string `json:"owner"`
	Count count  `json:"count"`
}

// count is how often the owner has entered, a number unless the field holds
// something else.
type count string

// MarshalJSON is part of json.Marshaler.
func (c count) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(c), 10, 64); err == nil {
		return json.Marshal(n)
	}
	return json.Marshal(string(c))
}

func newStatus(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show who holds a lock",
		Long: `Shows the holders of the lock NAME, how often each has entered it, and what its
lease has left. An owner is the UUID of a client, a colon, and a number that is a
thread of a Java process or an acquisition of a Go process.`,
		Example: `  redlatch status nightly-report
  redlatch status --json nightly-report | jq .held`,
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

// ask reads the lock's key, all of it at one moment.
func ask(ctx context.Context, url, name string) (*status, error) {
	if err := codec.ValidateName(name); err != nil {
		return nil, err
	}
	c, err := conn.Dial(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("%s", conn.Problem(url, err))
	}
	defer func() { _ = c.Close() }() // only read from
	for _, cmd := range []string{"MULTI", "TYPE", "HGETALL", "PTTL", "EXEC"} {
		var args []any
		if cmd != "MULTI" && cmd != "EXEC" {
			args = append(args, name)
		}
		// An error of Send shows again in Receive.
		_ = c.Send(cmd, args...)
	}
	replies, err := redis.Values(c.Do(""))
	if err == nil {
		replies, err = redis.Values(replies[len(replies)-1], nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s", conn.Problem(url, err))
	}
	return parse(name, replies)
}

// parse makes a status of the replies to TYPE, HGETALL and PTTL.
func parse(name string, replies []any) (*status, error) {
	if len(replies) != 3 {
		return nil, fmt.Errorf("the server gave %d replies to 3 questions", len(replies))
	}
	kind, err := redis.String(replies[0], nil)
	if err != nil {
		return nil, err
	}
	if kind != "hash" && kind != "none" {
		return nil, fmt.Errorf("the key %q holds a %s, and a lock is a hash: something else uses this name", name, kind)
	}
	fields, err := redis.Strings(replies[1], nil)
	if err != nil {
		return nil, err
	}
	ttl, err := redis.Int64(replies[2], nil)
	if err != nil {
		return nil, err
	}
	s := &status{Name: name, Held: kind == "hash", Holders: []holder{}}
	for i := 0; i+1 < len(fields); i += 2 {
		s.Holders = append(s.Holders, holder{Owner: fields[i], Count: count(fields[i+1])})
	}
	if ttl >= 0 {
		s.TTLMillis = &ttl
	}
	return s, nil
}

// print writes the status for people.
func (s *status) print(w io.Writer) {
	if !s.Held {
		fmt.Fprintf(w, "lock %q is free\n", s.Name)
		return
	}
	fmt.Fprintf(w, "lock %q is held\n", s.Name)
	for _, h := range s.Holders {
		fmt.Fprintf(w, "  owner  %s   count %s\n", printable(h.Owner), printable(string(h.Count)))
	}
	if s.TTLMillis == nil {
		fmt.Fprintln(w, "  lease  none: it stays until somebody frees it")
		return
	}
	left := time.Duration(*s.TTLMillis) * time.Millisecond
	fmt.Fprintf(w, "  lease  %v left\n", left.Round(100*time.Millisecond))
}

// printable quotes what a terminal should not get as it is.
func printable(s string) string {
	if q := strconv.QuoteToGraphic(s); s == "" || q[1:len(q)-1] != s || strings.Contains(s, " ") {
		return q
	}
	return s
}
