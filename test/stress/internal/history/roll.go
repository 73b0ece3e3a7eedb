package history

import "strings"

// Roll knows, of every owner, whether the server may still have it when nobody is
// inside. It grows with the history.
type Roll struct {
	alive map[string]string // UUIDs of clients that live, and their processes
	dead  map[string]bool   // processes that were killed; what they still write is of their last moment
	left  map[string]string // owners whose lock was left to its lease, and why
	holds map[string]string // owners by hold
	calls map[string]Record // calls that have not returned
}

// Take adds records, later ones than before, and puts them in order.
func (r *Roll) Take(records []Record) {
	if r.alive == nil {
		r.alive, r.dead, r.left = map[string]string{}, map[string]bool{}, map[string]string{}
		r.holds, r.calls = map[string]string{}, map[string]Record{}
	}
	inOrder(records)
	for _, rec := range records {
		r.take(rec)
	}
}

func (r *Roll) take(rec Record) {
	switch rec.Kind {
	case Life:
		if !r.dead[rec.P] {
			r.alive[rec.Owner] = rec.P
		}
	case LifeOver:
		delete(r.alive, rec.Owner)
	case Kill:
		r.dead[rec.P] = true
		for id, p := range r.alive {
			if p == rec.P {
				delete(r.alive, id)
			}
		}
	case Grant:
		r.holds[rec.Hold] = rec.Owner
	case Give:
		if rec.Op != "unlock" {
			r.left[r.holds[rec.Hold]] = rec.Op
		}
	case Kept:
		delete(r.left, r.holds[rec.Hold])
	case Over:
		r.left[r.holds[rec.Hold]] = rec.Err
	case Call:
		r.calls[rec.ID] = rec
	case Return:
		if c := r.calls[rec.ID]; c.Op == "unlock" && rec.Err != "" {
			r.left[r.holds[c.Hold]] = "unlock: " + rec.Err
		}
		delete(r.calls, rec.ID)
	}
}

// Excuse says why the server may have an owner from now on.
func (r *Roll) Excuse(owner, why string) { r.left[owner] = why }

// Explains says why the server may still have an owner, as a holder or in a queue,
// when nobody is at work, or returns "" when it may not.
func (r *Roll) Explains(owner string) string {
	id, _, _ := strings.Cut(owner, ":")
	if _, alive := r.alive[id]; !alive {
		return "its client has ended"
	}
	return r.left[owner]
}
