// Package inspect reads locks, and contains the JSON types that commands print. It does not write anything. Read gets
// one lock and its queue with a single script that reads all holders, so Glance first checks the hash with a short
// command. Run scans for locks, which it recognizes by their shape. Locks may change between two commands.
package inspect

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Kind is the kind of a lock, as far as its keys reveal it.
type Kind string

const (
	// Plain is a plain lock, or a fair lock with an empty queue.
	Plain Kind = "plain"
	// Fair is a lock with a queue.
	Fair Kind = "fair"
	// Fenced is a lock with a token counter and without a queue.
	Fenced Kind = "fenced"
	// FairFenced is a lock with a queue and a token counter.
	FairFenced Kind = "fair-fenced"
	// ReadWrite is a read/write lock.
	ReadWrite Kind = "readwrite"

	// Semaphore is a number with taken permits or with clients waiting for permits.
	Semaphore Kind = "semaphore"
	// Latch is a count-down latch that clients are waiting for.
	Latch Kind = "latch"
	// Counter is any other number.
	Counter Kind = "counter"
)

// IsNumber reports whether names of this kind hold a number.
func (k Kind) IsNumber() bool { return k == Semaphore || k == Latch || k == Counter }

// Lock is a lock found by a scan.
type Lock struct {
	Name string
	// Mode is the mode of a read/write lock, "read" or "write".
	Kind Kind
	Mode string
	// Holders is incomplete if More is set.
	Holders []Holder
	More    bool
	// TTL is the remaining lease at the time At, redlatch.NoTTL without a lease, or 0 for a free lock.
	TTL       time.Duration
	At        time.Time
	Queue     int64
	Next      string
	NextLabel string
	// NotSubscribed is the number of waiters without a subscriber. Scans do not set it.
	NotSubscribed int
	// Token is the last fencing token, or 0 if there is none.
	Token int64
	// Number is set if the name holds a number. In that case, only Name, Kind, TTL and At are also set.
	Number *Number
	// PlainWaiters counts connections that wait for a queued or read/write lock as if it were a
	// plain lock. ReadWriteWaiters counts the reverse. Both are 0 if unknown.
	PlainWaiters, ReadWriteWaiters int64
	// Places lists the first owners in the queue. Waiting counts the connections waiting for a lock
	// without a queue.
	Places      []string
	PlaceLabels []string
	Waiting     int64
}

// View is a lock as commands print it.
type View struct {
	Named
	Kind    Kind     `json:"kind,omitempty"`
	Held    bool     `json:"held"`
	Mode    string   `json:"mode,omitempty"`
	Holders []Holder `json:"holders"`
	Lease
	Token            int64 `json:"token,omitempty"`
	PlainWaiters     int64 `json:"plain_waiters,omitempty"`
	ReadWriteWaiters int64 `json:"read_write_waiters,omitempty"`
}

// View returns the lock as commands print it.
func (l *Lock) View() View {
	held := len(l.Holders) > 0
	return View{
		Named: NameOf(l.Name), Kind: l.Kind, Held: held, Mode: l.Mode, Holders: append([]Holder{}, l.Holders...),
		Lease: LeaseOf(held, l.TTL), Token: l.Token, PlainWaiters: l.PlainWaiters, ReadWriteWaiters: l.ReadWriteWaiters,
	}
}

// HasTwoKinds reports whether clients use the lock as two different kinds.
func (l *Lock) HasTwoKinds() bool {
	return l.PlainWaiters+l.ReadWriteWaiters > 0 || l.Kind == ReadWrite && l.Queue > 0
}

// Kinds returns all kinds.
func Kinds() []string {
	return []string{
		string(Plain), string(Fair), string(Fenced), string(FairFenced), string(ReadWrite),
		string(Semaphore), string(Latch), string(Counter),
	}
}

// KindNames lists all kinds in words.
func KindNames() string {
	return "plain, fair, fenced, fair-fenced, readwrite, semaphore, latch or counter"
}

// WithToken returns the kind of a lock with the given last token, or k if token is 0.
func (k Kind) WithToken(token int64) Kind {
	switch {
	case token < 1:
	case k == Plain:
		return Fenced
	case k == Fair:
		return FairFenced
	}
	return k
}

// QueueKey returns the key of the lock's queue.
func (l *Lock) QueueKey() string { return codec.QueueKey(l.Name) }

var queuePrefix = strings.TrimSuffix(codec.QueueKey("{"), "{")

func lockOf(queueKey string) string { return Unbraced(strings.TrimPrefix(queueKey, queuePrefix)) }

// Unbraced removes the braces that Redisson puts around a name.
func Unbraced(part string) string {
	if n := len(part); n > 2 && part[0] == '{' && part[n-1] == '}' && !strings.Contains(part[1:n-1], "{") {
		return part[1 : n-1]
	}
	return part
}

const (
	// countedHolds and allHolds limit the holds to read for a reader and for a lock.
	countedHolds = 64
	allHolds     = 1024
)

// Holder is a holder of a lock, or a permit of a semaphore.
type Holder struct {
	Owner string `json:"owner"`
	Count Count  `json:"count"`
	Client
	// Mode is the mode of a read/write lock, or "permit".
	Mode string `json:"mode,omitempty"`
	// LeftMillis is the remaining lease of a reader or a permit. It is 0 if the lease has expired,
	// and nil if it is unknown or infinite.
	LeftMillis *int64 `json:"left_ms,omitempty"`
	// Renewed is "" if the lease was not watched.
	Renewed string `json:"renewed,omitempty"`
	Label   string `json:"label,omitempty"`
	// Inner is a wait inside the hold. A scan reads it only for locks with waiters.
	Inner *Inner `json:"-"`

	unsure bool // a reader whose lease may have expired
}

// Count is a hold count, usually a number.
type Count string

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(c), 10, 64); err == nil {
		return json.Marshal(n)
	}
	return json.Marshal(string(c))
}

func holderOf(owner, count string, readWrite bool) Holder {
	h := Holder{Owner: owner, Count: Count(count), Client: ClientOf(owner)}
	if readWrite {
		h.Mode = protocol.ModeRead
		if _, writes := protocol.WriterOf(owner); writes {
			h.Mode = protocol.ModeWrite
		}
	}
	return h
}

// ReadLeases reads the leases of the readers among holders in one batch. Readers whose holds have all expired do not
// block writers. unread lists readers whose leases are unknown, because they have very many holds, come after 1,024
// other holds, or cannot be read by the user.
func ReadLeases(c redis.Conn, name string, holders []Holder) (unread []string) {
	var calls []call
	var asked []int
	for i := range holders {
		n, err := strconv.ParseInt(string(holders[i].Count), 10, 64)
		if holders[i].Mode != protocol.ModeRead || err != nil || n > countedHolds || len(calls) > allHolds {
			continue
		}
		for k := range n {
			calls, asked = append(calls, command("PTTL", protocol.HoldKey(name, holders[i].Owner, k+1))), append(asked, i)
		}
	}
	replies, _ := ask(c, calls)
	left := map[int]time.Duration{}
	for i, reply := range replies {
		if ms, isNumber := reply.(int64); isNumber {
			left[asked[i]] = longer(left[asked[i]], ms)
		}
	}
	for i := range holders {
		h := &holders[i]
		switch d, known := left[i]; {
		case known:
			h.LeftMillis = LeaseOf(true, d).TTLMillis
		case h.Mode == protocol.ModeRead:
			unread = append(unread, h.Owner)
		}
	}
	return unread
}

func longer(left time.Duration, ms int64) time.Duration {
	switch {
	case left == redlatch.NoTTL || ms == -1:
		return redlatch.NoTTL
	case ms < 0:
		return left
	}
	return max(left, limits.FromMillis(ms))
}

// SetLabels sets the labels of holders and waiters. An error means a broken connection.
func SetLabels(c redis.Conn, holders []Holder, waiters []Waiter) error {
	var owners []string
	for i := range holders {
		owners = append(owners, holders[i].Owner)
	}
	for i := range waiters {
		owners = append(owners, waiters[i].Owner)
	}
	labels, err := Labels(c, owners)
	for i := range holders {
		holders[i].Label = labels[holders[i].Owner]
	}
	for i := range waiters {
		waiters[i].Label = labels[waiters[i].Owner]
	}
	return err
}

// IsOver reports whether the lease of a reader or permit has expired.
func (h *Holder) IsOver() bool { return h.LeftMillis != nil && *h.LeftMillis == 0 }

// Describe describes a holder without its owner and count. It calls show to format milliseconds.
func (h *Holder) Describe(show func(ms int64) string) string {
	said := h.String()
	switch h.Mode {
	case protocol.ModeWrite:
		said += ", writes"
	case protocol.ModeRead:
		said += ", reads" + h.lease(show)
	case "permit":
		said = "permit" + h.lease(show)
		if h.LeftMillis == nil {
			said += ", never ends"
		}
	}
	if h.Label != "" {
		said += ", label " + sanitize.Word(h.Label)
	}
	return said
}

func (h *Holder) lease(show func(ms int64) string) string {
	switch {
	case h.LeftMillis == nil:
		return ""
	case h.IsOver():
		return ", its own lease has expired"
	}
	said := ", " + show(*h.LeftMillis) + " left"
	switch h.Renewed {
	case RenewedYes:
		said += ", renewed"
	case RenewedNo:
		said += ", not renewed when due"
	}
	return said
}

// ModeText returns the mode of a read/write lock in words.
func ModeText(mode string) string {
	if mode == protocol.ModeWrite {
		return "read/write, held for writing"
	}
	return "read/write, held for reading"
}
