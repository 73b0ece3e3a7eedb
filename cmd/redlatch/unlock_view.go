package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/listing"
	"github.com/redlatch/redlatch/codec"
)

// Why a lock was not taken.
const (
	refusedAlive    = "alive"
	refusedUnknown  = "not_known_dead"
	refusedOther    = "held_by_another"
	refusedChanged  = "changed_hands"
	refusedKind     = "other_kind"
	refusedFree     = "free"
	refusedDeclined = "declined"
)

// How it went.
const (
	outcomeTaken = "taken"
	outcomeFree  = "free"
)

// readWriteMode is the field that the hash of a read-write lock has beside those of
// its owners.
const readWriteMode = "mode"

// forced is what there is to tell of a lock that is to be taken away.
type forced struct {
	Name    string        `json:"name"`
	Holders []forcedOwner `json:"holders"`
	// TTLMillis is what the lease has left, nil when there is none.
	TTLMillis *int64 `json:"ttl_ms"`
	// Renewed is whether the lease is seen to be renewed: yes, no or unknown.
	Renewed string `json:"renewed"`
	// Waiting is how many are in the queue of a fair lock.
	Waiting int  `json:"waiting"`
	Taken   bool `json:"taken"`
	// Refused is why the lock was not taken.
	Refused string `json:"refused,omitempty"`

	changed bool // it has another holder than at first
}

// forcedOwner is who loses the lock.
type forcedOwner struct {
	Owner string `json:"owner"`
	client
	Count count  `json:"count"`
	Label string `json:"label,omitempty"`
}

func forcedOf(s *sighting) *forced {
	f := &forced{Name: s.in.Name, Holders: []forcedOwner{}, Renewed: renewedUnknown, Waiting: len(s.in.Queue)}
	for _, h := range s.in.Holders {
		f.Holders = append(f.Holders, forcedOwner{Owner: h.Text, client: clientOf(h.Text), Count: count(h.CountText)})
	}
	if s.in.Held() && s.in.TTL >= 0 {
		left := s.in.TTL.Milliseconds()
		f.TTLMillis = &left
	}
	return f
}

// lookBeside looks up the labels of the holders. Without them it tells less.
func (f *forced) lookBeside(ctx context.Context, srv *conn.Server) {
	c, err := srv.Dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // only read from
	var owners []string
	for i := range f.Holders {
		owners = append(owners, f.Holders[i].Owner)
	}
	labels, err := listing.Labels(c, owners)
	if err != nil {
		return
	}
	for i := range f.Holders {
		f.Holders[i].Label = labels[f.Holders[i].Owner]
	}
}

func (f *forced) isReadWrite() bool {
	return slices.ContainsFunc(f.Holders, func(o forcedOwner) bool { return o.Owner == readWriteMode })
}

// stranger returns a field of the hash that is no owner, "" when all are. An owner is
// a UUID and a number, and has a count.
func (f *forced) stranger() string {
	for _, h := range f.Holders {
		_, badOwner := codec.ParseOwner(h.Owner)
		_, badCount := strconv.ParseInt(string(h.Count), 10, 64)
		if badOwner != nil || badCount != nil {
			return h.Owner
		}
	}
	return ""
}

// refuse notes why the lock is not taken, and makes the error of it.
func (f *forced) refuse(code int, why, format string, args ...any) error {
	f.Refused = why
	return exitf(code, format, args...)
}

// isFree notes that there is nothing to take.
func (f *forced) isFree() error {
	f.Refused = refusedFree
	return &exitError{code: codeFree} // it is told as what was found
}

// doubt says why the holder may live.
func (f *forced) doubt() string {
	switch {
	case f.TTLMillis == nil:
		return "the lock has no lease, so there is nothing to renew"
	case f.Renewed == renewedNo:
		return "its lease is not renewed, but it may have a lease of its own, or be cut off"
	}
	return "whether its lease is renewed was not looked at for long enough"
}

// lease says what the lease has left, and whether it is renewed.
func (f *forced) lease() string {
	switch {
	case f.TTLMillis == nil:
		return "none: it stays until somebody frees it"
	case f.Renewed == renewedYes:
		return lasts(*f.TTLMillis) + " left, renewed"
	case f.Renewed == renewedNo:
		return lasts(*f.TTLMillis) + " left, not renewed when it was due"
	}
	return lasts(*f.TTLMillis) + " left, fixed or renewed"
}

// describe names who loses the lock, in one line.
func (f *forced) describe() string {
	var all []string
	for _, h := range f.Holders {
		all = append(all, fmt.Sprintf("%s (%s, count %s)", printable(h.Owner), h.labelled(h.Label), printable(string(h.Count))))
	}
	return strings.Join(all, ", ") + ", lease " + f.lease()
}

// tell prints what was found, and what came of it.
func (o *unlockOptions) tell(cmd *cobra.Command, f *forced) {
	if o.json {
		_ = printJSON(cmd, f) // an output that is gone has nobody to tell
		return
	}
	if !o.shown {
		f.print(cmd.OutOrStdout())
	}
	if f.Taken {
		fmt.Fprintln(cmd.OutOrStdout(), "  taken  those who wait were told")
	}
}

// print tells people.
func (f *forced) print(w io.Writer) {
	if len(f.Holders) == 0 {
		fmt.Fprintf(w, "lock %q is free\n", f.Name)
		return
	}
	fmt.Fprintf(w, "lock %q is held\n", f.Name)
	for _, h := range f.Holders {
		fmt.Fprint(w, beside("  owner  "+printable(h.Owner), "count "+printable(string(h.Count))))
		fmt.Fprint(w, hanging("", h.labelled(h.Label)))
	}
	fmt.Fprintf(w, "  lease  %s\n", f.lease())
	if f.Waiting > 0 {
		fmt.Fprintf(w, "  queue  %d waiting\n", f.Waiting)
	}
}
