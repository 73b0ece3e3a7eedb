package history

import "strings"

// Owners knows, of every owner, whether the server may still have it when no caller is
// inside. It grows with the history.
type Owners struct {
	alive map[string]string // UUIDs of clients that live, and their processes
	dead  map[string]bool   // processes that were killed; what they still write is of their last moment
	left  map[string]string // owners whose lock was left to its lease, and why
	holds map[string]string // owners by hold
	calls map[string]Record // calls that have not returned
}

// Add adds records, later ones than before, and puts them in order.
func (o *Owners) Add(records []Record) {
	if o.alive == nil {
		o.alive, o.dead, o.left = map[string]string{}, map[string]bool{}, map[string]string{}
		o.holds, o.calls = map[string]string{}, map[string]Record{}
	}
	inOrder(records)
	for _, rec := range records {
		o.add(rec)
	}
}

func (o *Owners) add(rec Record) {
	switch rec.Kind {
	case Life:
		if !o.dead[rec.P] {
			o.alive[rec.Owner] = rec.P
		}
	case LifeOver:
		delete(o.alive, rec.Owner)
	case Kill:
		o.dead[rec.P] = true
		for id, p := range o.alive {
			if p == rec.P {
				delete(o.alive, id)
			}
		}
	case Grant:
		o.holds[rec.Hold] = rec.Owner
	case Give:
		if !frees(rec.Op) {
			o.left[o.holds[rec.Hold]] = rec.Op
		}
	case Kept:
		delete(o.left, o.holds[rec.Hold])
	case Over:
		o.left[o.holds[rec.Hold]] = rec.Err
	case Call:
		o.calls[rec.ID] = rec
	case Return:
		if c := o.calls[rec.ID]; frees(c.Op) && rec.Err != "" {
			o.left[o.holds[c.Hold]] = "unlock: " + rec.Err
		}
		delete(o.calls, rec.ID)
	}
}

// Excuse says why the server may have an owner from now on.
func (o *Owners) Excuse(owner, why string) { o.left[owner] = why }

// Explains returns why the server may still have an owner, as a holder or in a queue, when
// no caller is at work, or "" when it may not.
func (o *Owners) Explains(owner string) string {
	id, _, _ := strings.Cut(owner, ":")
	if _, alive := o.alive[id]; !alive {
		return "its client has ended"
	}
	return o.left[owner]
}
