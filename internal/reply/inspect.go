package reply

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/protocol"
)

// Held is one field of a lock's hash.
type Held struct {
	Owner string
	// Count is 0 if Text is not a number.
	Count int64
	Text  string
	// Left is the remaining time of a reader's longest hold, or 0 for other holders.
	Left time.Duration
}

// Queued is one place in the queue of a fair lock.
type Queued struct {
	Owner string
	// Deadline is the zero time if there is none.
	Deadline time.Time
	// Score is the deadline as in [Place.Deadline].
	Score string
	// Listeners is the number of subscribers to the owner's channel, or -1 if unknown.
	Listeners int64
}

// Inspection is the reply to an inspection.
type Inspection struct {
	// Left is the remaining lease, [NoTTL], or [NoKey] if the lock is free.
	Left time.Duration
	// Mode is [protocol.ModeRead] or [protocol.ModeWrite] for a read/write lock, otherwise "".
	Mode string
	// Held contains the lock's holders. The owner of a writer is its [protocol.WriterField].
	Held    []Held
	Queue   []Queued
	Waiting int64
}

// Inspected decodes the reply to an inspection.
func Inspected(reply any) (Inspection, error) {
	var in Inspection
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 && len(parts) != 6 {
		return in, badReply("inspection", reply)
	}
	var err error
	if in.Left, err = Millis(parts[0]); err != nil {
		return Inspection{}, err
	}
	if in.Held, err = holders(parts[1]); err != nil {
		return Inspection{}, err
	}
	if len(parts) == 2 {
		return in, nil
	}
	if in.Queue, err = waiters(parts[2], parts[3], parts[4]); err != nil {
		return Inspection{}, err
	}
	if in.Waiting, ok = parts[5].(int64); !ok || in.Waiting < int64(len(in.Queue)) {
		return Inspection{}, badReply("inspection", parts[5])
	}
	return in, nil
}

// InspectedReadWrite decodes the reply to an inspection of a read/write lock. If there is no mode,
// all fields are holders.
func InspectedReadWrite(reply any) (Inspection, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 3 {
		return Inspection{}, badReply("inspection", reply)
	}
	in, err := Inspected(parts[:2])
	if err != nil {
		return Inspection{}, err
	}
	lefts, ok := parts[2].([]any)
	if !ok || len(lefts) != len(in.Held) {
		return Inspection{}, badReply("inspection", parts[2])
	}
	for i := range in.Held {
		ms, ok := lefts[i].(int64)
		if !ok {
			return Inspection{}, badReply("inspection", lefts[i])
		}
		in.Held[i].Left = limits.FromMillis(max(ms, 0))
	}
	for i, h := range in.Held {
		if h.Owner == protocol.ModeField && (h.Text == protocol.ModeRead || h.Text == protocol.ModeWrite) {
			in.Mode = h.Text
			in.Held = slices.Delete(in.Held, i, i+1)
			break
		}
	}
	return in, nil
}

func holders(reply any) ([]Held, error) {
	fields, err := pairs("inspection", reply)
	if err != nil {
		return nil, err
	}
	var held []Held
	for _, f := range fields {
		count, isNumber := parseDecimal(f[1])
		if !isNumber {
			count = 0 // a field of another kind of lock, or of another program
		}
		held = append(held, Held{Owner: f[0], Count: count, Text: f[1]})
	}
	return held, nil
}

func pairs(of string, reply any) ([][2]string, error) {
	all, err := texts(of, reply)
	if err != nil || len(all)%2 != 0 {
		return nil, badReply(of, reply)
	}
	out := make([][2]string, 0, len(all)/2)
	for i := 0; i < len(all); i += 2 {
		out = append(out, [2]string{all[i], all[i+1]})
	}
	return out, nil
}

func texts(of string, reply any) ([]string, error) {
	items, ok := reply.([]any)
	if !ok {
		return nil, badReply(of, reply)
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		text, isText := bulk(item)
		if !isText {
			return nil, badReply(of, item)
		}
		out = append(out, text)
	}
	return out, nil
}

func waiters(order, deadlines, listeners any) ([]Queued, error) {
	owners, err := texts("inspection", order)
	if err != nil {
		return nil, err
	}
	scores, err := pairs("inspection", deadlines)
	if err != nil {
		return nil, err
	}
	counts, ok := listeners.([]any)
	if !ok {
		return nil, badReply("inspection", listeners)
	}
	due, text := map[string]time.Time{}, map[string]string{}
	for _, s := range scores {
		ms, err := strconv.ParseFloat(s[1], 64)
		if err != nil || math.IsNaN(ms) {
			return nil, badReply("inspection", s[1])
		}
		due[s[0]] = time.UnixMilli(int64(max(min(ms, math.MaxInt64/1e6), math.MinInt64/1e6)))
		text[s[0]] = s[1]
	}
	queue := make([]Queued, 0, len(owners))
	for i, owner := range owners {
		q := Queued{Owner: owner, Deadline: due[owner], Score: text[owner], Listeners: -1}
		if i < len(counts) {
			if n, isNumber := counts[i].(int64); isNumber {
				q.Listeners = n
			}
		}
		queue = append(queue, q)
	}
	return queue, nil
}

// Permits is the result of an attempt to acquire permits.
type Permits struct {
	Granted bool
	Exists  bool
	// Available is below 0 if more permits are acquired than exist.
	Available int64
	// Total is 0 if unknown.
	Total int64
	// TTL is the time until the next lease of a permit ends, or [NoTTL].
	TTL time.Duration
}

// TakenPermits decodes the reply to an attempt to acquire permits.
func TakenPermits(reply any) (Permits, error) {
	if left, ok := reply.(int64); ok {
		return Permits{Granted: true, Exists: true, Available: left, TTL: NoTTL}, nil
	}
	n, err := numbers("acquire", reply, 1, 3)
	if err != nil {
		return Permits{}, err
	}
	p := Permits{TTL: NoTTL, Exists: len(n) > 1}
	if n[0] >= 0 {
		p.TTL = limits.FromMillis(n[0])
	}
	if len(n) > 1 {
		p.Available = n[1]
	}
	if len(n) > 2 {
		p.Total = n[2]
	}
	return p, nil
}

// ReturnedPermits decodes the number of permits that were released, and how many of them had
// expired.
func ReturnedPermits(reply any) (returned, over int64, err error) {
	n, err := numbers("release", reply, 2, 2)
	if err != nil {
		return 0, 0, err
	}
	return n[0], n[1], nil
}

// AvailablePermits decodes the reply to a count of permits.
func AvailablePermits(reply any) (int64, error) {
	n, err := numbers("count", reply, 3, 3)
	if err != nil {
		return 0, err
	}
	return n[1], nil
}

// Number decodes a number.
func Number(reply any) (int64, error) {
	if n, ok := reply.(int64); ok {
		return n, nil
	}
	return 0, badReply("a number", reply)
}

func numbers(of string, reply any, least, most int) ([]int64, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) < least || len(parts) > most {
		return nil, badReply(of, reply)
	}
	n := make([]int64, len(parts))
	for i, part := range parts {
		if n[i], ok = part.(int64); !ok {
			return nil, badReply(of, reply)
		}
	}
	return n, nil
}

// Semaphore is the result of an inspection of a semaphore.
type Semaphore struct {
	// Left is the semaphore's TTL, [NoTTL] or [NoKey].
	Left time.Duration
	// Available is empty if the semaphore does not exist.
	Available string
	Taken     int64
	// Permits contains the acquired permits in the order in which they expire.
	Permits []Permit
}

// Permit is an acquired permit.
type Permit struct {
	ID string
	// Ends is the end of its lease, in milliseconds since 1970.
	Ends float64
}

// InspectedPermits decodes the reply to an inspection of a semaphore.
func InspectedPermits(reply any) (Semaphore, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 4 {
		return Semaphore{}, badReply("inspection", reply)
	}
	left, err := Millis(parts[0])
	if err != nil {
		return Semaphore{}, err
	}
	available, isText := bulk(parts[1])
	taken, isNumber := parts[2].(int64)
	pairs, isList := parts[3].([]any)
	if !isText || !isNumber || !isList || len(pairs)%2 != 0 {
		return Semaphore{}, badReply("inspection", reply)
	}
	s := Semaphore{Left: left, Available: available, Taken: taken}
	for i := 0; i < len(pairs); i += 2 {
		id, isText := bulk(pairs[i])
		score, _ := bulk(pairs[i+1])
		ends, err := strconv.ParseFloat(score, 64)
		if err != nil || !isText {
			return Semaphore{}, badReply("inspection", pairs[i+1])
		}
		s.Permits = append(s.Permits, Permit{id, ends})
	}
	return s, nil
}
