package listing

import (
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/codec"
)

// Kind is what kind of lock something looks like.
type Kind string

const (
	// Plain is a lock without a queue: a plain one, or a fair one that nobody waits
	// for.
	Plain Kind = "plain"
	// Fair is a lock with a queue.
	Fair Kind = "fair"
	// ReadWrite is one of Redisson's read/write locks, which this program tells of and
	// does not take.
	ReadWrite Kind = "readwrite"
)

// Lock is a lock as it was found.
type Lock struct {
	// Name is the lock's name on the server.
	Name string
	// Kind is what kind of lock it looks like.
	Kind Kind
	// Holders are those who hold it, a few of them if they are many; none when it is
	// free.
	Holders []Holder
	// More is true when there are holders that are not shown.
	More bool
	// TTL is what the lease has left, codec.NoTTL when it has none, 0 when the lock is
	// free.
	TTL time.Duration
	// Queue is how many wait in a fair lock's queue, Next who is the first of them.
	Queue int64
	Next  string
	// NextLabel is the label of the client of Next, empty when it has none.
	NextLabel string
}

// Holder is who holds a lock.
type Holder struct {
	// Owner and Count are as they stand in Redis.
	Owner, Count string
	// Label is that of the owner's client, empty when it has none.
	Label string
}

// QueueKey is the key of the lock's queue, if it is a fair one.
func (l *Lock) QueueKey() string { return codec.QueueKey(l.Name) }

const (
	// modeField is what a read/write lock has beside its holders.
	modeField = "mode"
	// writeSuffix ends the owner of a write lock.
	writeSuffix = ":write"
)

// recognise returns the lock that a hash's fields look like, nil for other hashes.
// With more, these are only some of the fields.
func recognise(name string, fields [][2]string, more bool) *Lock {
	lock := &Lock{Name: name, Kind: Plain, More: more}
	writing := false
	for _, f := range fields {
		if f[0] == modeField && (f[1] == "read" || f[1] == "write") {
			lock.Kind = ReadWrite
			continue
		}
		owner, writes := strings.CutSuffix(f[0], writeSuffix)
		if !isHolder(owner, f[1]) {
			return nil
		}
		writing = writing || writes
		lock.Holders = append(lock.Holders, Holder{Owner: f[0], Count: f[1]})
	}
	switch {
	case len(lock.Holders) == 0:
		return nil
	case more && lock.Kind == Plain:
		lock.Kind = ReadWrite // if anything: whether it has a mode is to be asked
	case lock.Kind == Plain && (len(lock.Holders) > 1 || writing):
		return nil
	}
	return lock
}

// isHolder reports whether the texts are those of an owner and its count.
func isHolder(owner, count string) bool {
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n <= 0 {
		return false
	}
	_, err = codec.ParseOwner(owner)
	return err == nil
}

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
