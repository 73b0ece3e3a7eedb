// Package inspect reads locks: one at a moment, or all on a server, and says what is known of
// them. It writes nothing, neither to the server nor to a terminal. Its types have the JSON that
// commands print.
//
//	one lock    Glance ─▶ is it a lock? ─▶ Read ─▶ Snapshot ─▶ Renewal, Part
//	all locks   RunOnMasters ─▶ Run ─▶ Lock
//	a number    NumberAt ─▶ Lock
//
// Read has the lock and its queue as they were at one moment. It reads all holders by one script, so
// Glance first looks whether the hash is a lock, with a command that is short for the server.
//
// Run finds the locks of all clients, with commands that are short however many keys there are. A
// lock has no mark but its shape, so all hashes are looked at:
//
//	SCAN … MATCH pattern TYPE hash      250 keys at a time
//	   │  names of hashes
//	   ▼
//	HSCAN name, a few fields            is it a lock? one field uuid:number with a count,
//	   │                                or several and a field "mode"
//	   │  locks
//	   ▼
//	PTTL, LLEN queue, GET labels        the details; 200 locks at a time
//
//	SCAN … MATCH redisson_lock_queue:* TYPE list
//	   │  queues that were not seen yet: their locks are free
//	   ▼
//	as above
//
//	SCAN … MATCH *:timeout TYPE zset
//	   │  permits, beside a number
//	   ▼
//	GETRANGE, PTTL, ZCOUNT permits      a semaphore, if the first permit has 16 bytes
//
// A semaphore of which no permit is taken, a plain one and a count-down latch are a number, as
// other programs have them. They are looked for when that is asked for only.
//
// KEYS and HGETALL are not used for that: one blocks the server for as long as it has keys, the
// other for as long as a hash, which need not be a lock, has fields. Between the commands
// about one lock other clients may change it; a lock that is gone by then is left out.
//
// Locks are handed on as they are found. What is kept is a number for each lock, up to a
// limit, so that no lock is reported twice: SCAN may return a key more than once. Beyond
// the limit it may be.
//
// A plain lock and a fair one with an empty queue look alike on the server: a lock is
// called fair when it has a queue.
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
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Kind is what kind of lock something looks like.
type Kind string

const (
	// Plain is a lock without a queue: a plain one, or a fair one with an empty queue.
	Plain Kind = "plain"
	// Fair is a lock with a queue.
	Fair Kind = "fair"
	// Fenced is a lock without a queue and with a counter of tokens. A lock without tokens
	// that has the name of one with tokens looks the same.
	Fenced Kind = "fenced"
	// FairFenced is a lock with a queue and a counter of tokens.
	FairFenced Kind = "fair-fenced"
	// ReadWrite is a read/write lock.
	ReadWrite Kind = "readwrite"

	// Semaphore is a number of permits of which some are taken or waited for.
	Semaphore Kind = "semaphore"
	// Latch is a count-down latch that connections wait for.
	Latch Kind = "latch"
	// Counter is a number that may be a semaphore or a latch, or something else.
	Counter Kind = "counter"
)

// IsNumber reports whether a name of this kind holds a number.
func (k Kind) IsNumber() bool { return k == Semaphore || k == Latch || k == Counter }

// Lock is a lock as it was found.
type Lock struct {
	// Name is the lock's name on the server.
	Name string
	// Kind is what kind of lock it looks like, Mode whether a read/write lock is held
	// for "read" or for "write".
	Kind Kind
	Mode string
	// Holders are the holders, a few of them if they are many; none when it is free.
	Holders []Holder
	// More is true when there are holders that are not shown.
	More bool
	// TTL is what the lease has left, redlatch.NoTTL when it has none, 0 when the lock is
	// free.
	TTL time.Duration
	// At is when the TTL was read.
	At time.Time
	// Queue is the length of a fair lock's queue, Next the first owner in it.
	Queue int64
	Next  string
	// NextLabel is the label of the client of Next, empty when it has none.
	NextLabel string
	// NotSubscribed is how many of the queue have no subscriber. A scan leaves it 0.
	NotSubscribed int
	// Token is the last token that was given, 0 for a lock without.
	Token int64
	// Number is what there is to tell of one that IsNumber, nil of others. Of such only Name,
	// Kind and TTL, which is how long the number lives, are set besides.
	Number *Number
	// PlainWaiters is how many connections wait for the lock as for a plain one while
	// others are queued for it, or it is held as a read/write lock. ReadWriteWaiters is how
	// many wait for it as for a read/write lock while it is held as another kind. Both are 0
	// when that is unknown.
	PlainWaiters, ReadWriteWaiters int64
	// Places are the first owners in the queue, PlaceLabels the labels of their clients, empty
	// for those that have none. Waiting is how many connections wait for a lock without a queue.
	// All are only there if the Request wants them.
	Places      []string
	PlaceLabels []string
	Waiting     int64
}

// View is a lock as commands print it.
type View struct {
	Named
	// Kind is what the lock looks like, "" when it is free and its queue is empty.
	Kind Kind `json:"kind,omitempty"`
	Held bool `json:"held"`
	// Mode is what a read/write lock is held for, "read" or "write".
	Mode    string   `json:"mode,omitempty"`
	Holders []Holder `json:"holders"`
	Lease
	// Token is the last fencing token that was given, also of a lock that is free; left out
	// for a lock without.
	Token int64 `json:"token,omitempty"`
	// PlainWaiters and ReadWriteWaiters are as in Lock.
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

// HasTwoKinds reports whether the name is that of two kinds of lock: waiters of one kind wait
// for a lock of another.
func (l *Lock) HasTwoKinds() bool {
	return l.PlainWaiters+l.ReadWriteWaiters > 0 || l.Kind == ReadWrite && l.Queue > 0
}

// Kinds are all kinds, for people to choose from.
func Kinds() []string {
	return []string{
		string(Plain), string(Fair), string(Fenced), string(FairFenced), string(ReadWrite),
		string(Semaphore), string(Latch), string(Counter),
	}
}

// KindNames says which kinds there are.
func KindNames() string {
	return "plain, fair, fenced, fair-fenced, readwrite, semaphore, latch or counter"
}

// WithToken returns what kind of lock this is when it has given a token, 0 for none.
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

// QueueKey is the key of the lock's queue, if it is a fair one.
func (l *Lock) QueueKey() string { return codec.QueueKey(l.Name) }

// queuePrefix is what the keys of queues begin with.
var queuePrefix = strings.TrimSuffix(codec.QueueKey("{"), "{")

// lockOf returns the name of the lock that a queue is of.
func lockOf(queueKey string) string { return Unbraced(strings.TrimPrefix(queueKey, queuePrefix)) }

// Unbraced returns the name that the brace rule has made part of a queue's or a
// channel's. Of the names a and {a}, for which that is the same, it returns a.
func Unbraced(part string) string {
	if n := len(part); n > 2 && part[0] == '{' && part[n-1] == '}' && !strings.Contains(part[1:n-1], "{") {
		return part[1 : n-1]
	}
	return part
}

const (
	// countedHolds is how many holds of one reader are looked at, and allHolds how many
	// of all readers of a lock.
	countedHolds = 64
	allHolds     = 1024
)

// Holder is a holder of a lock.
type Holder struct {
	// Owner is as it stands in Redis: that of a write lock ends in ":write".
	Owner string `json:"owner"`
	Count Count  `json:"count"`
	Client
	// Mode is what it holds a read/write lock for, "read" or "write", or "permit" for a permit of
	// a semaphore, whose owner is the permit's id.
	Mode string `json:"mode,omitempty"`
	// LeftMillis is what a reader or a permit has left of its own lease, 0 when that is over; nil
	// when it has none or it is not known.
	LeftMillis *int64 `json:"left_ms,omitempty"`
	// Renewed is whether that lease was seen to be renewed, "" if it was not watched.
	Renewed string `json:"renewed,omitempty"`
	// Label is that of the owner's client, empty when it has none.
	Label string `json:"label,omitempty"`
}

// Count is how often the owner has entered, a number unless the field holds
// something else.
type Count string

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(c), 10, 64); err == nil {
		return json.Marshal(n)
	}
	return json.Marshal(string(c))
}

// holderOf returns the holder that a field of a lock's hash names.
func holderOf(owner, count string, readWrite bool) Holder {
	h := Holder{Owner: owner, Count: Count(count), Client: ClientOf(owner)}
	if readWrite {
		h.Mode = codec.ModeRead
		if _, writes := codec.WriterOf(owner); writes {
			h.Mode = codec.ModeWrite
		}
	}
	return h
}

// ReadLeases reads what each reader among the holders of a read/write lock has left of its own lease:
// the lock has one lease for all of them, and for each hold a key that lasts as long as the hold's own
// lease. It is 0 for a reader whose holds are all over, which no longer blocks the lock when the other
// readers have left. LeftMillis stays nil for a reader without a lease, and for the unread ones: readers
// that have very many holds or come after 1,024 others, and readers whose keys the user may not read. It
// sends one PTTL for each hold, all at once.
func ReadLeases(c redis.Conn, name string, holders []Holder) (unread []string) {
	var calls []call
	var asked []int // the holder of each call
	for i := range holders {
		n, err := strconv.ParseInt(string(holders[i].Count), 10, 64)
		if holders[i].Mode != codec.ModeRead || err != nil || n > countedHolds || len(calls) > allHolds {
			continue
		}
		for k := range n {
			calls, asked = append(calls, command("PTTL", codec.HoldKey(name, holders[i].Owner, k+1))), append(asked, i)
		}
	}
	replies, _ := ask(c, calls) // none, if the connection is broken
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
		case h.Mode == codec.ModeRead:
			unread = append(unread, h.Owner)
		}
	}
	return unread
}

// longer returns the longer of what was left so far and what a reply to PTTL says.
func longer(left time.Duration, ms int64) time.Duration {
	switch {
	case left == redlatch.NoTTL || ms == -1:
		return redlatch.NoTTL
	case ms < 0: // it is over
		return left
	}
	return max(left, limits.FromMillis(ms))
}

// SetLabels looks up the labels of holders and waiters, and sets them. An error says that the connection
// is broken.
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

// IsOver reports whether it is a reader or a permit whose own lease has expired: it no longer
// blocks anyone.
func (h *Holder) IsOver() bool { return h.LeftMillis != nil && *h.LeftMillis == 0 }

// Describe returns what there is to say of a holder beyond its owner and count. Show formats
// milliseconds.
func (h *Holder) Describe(show func(ms int64) string) string {
	said := h.String()
	switch h.Mode {
	case codec.ModeWrite:
		said += ", writes"
	case codec.ModeRead:
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

// lease returns what there is to say of the holder's own lease, after a comma; "" for nothing.
func (h *Holder) lease(show func(ms int64) string) string {
	switch {
	case h.LeftMillis == nil:
		return ""
	case h.IsOver():
		return ", its own lease is over"
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
	if mode == codec.ModeWrite {
		return "read/write, held for writing"
	}
	return "read/write, held for reading"
}
