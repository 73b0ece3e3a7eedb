package mux

// ring is a queue in a circular buffer that grows as needed. The zero ring is
// empty and ready. It is not safe for concurrent use.
type ring[T any] struct {
	buf  []T // its length is a power of two
	head int
	n    int
}

const (
	ringMin  = 64
	ringKeep = 4096 // a larger buffer is let go when the ring runs empty
)

func (r *ring[T]) len() int { return r.n }

func (r *ring[T]) pushBack(v T) {
	r.grow()
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = v
	r.n++
}

func (r *ring[T]) pushFront(v T) {
	r.grow()
	r.head = (r.head - 1) & (len(r.buf) - 1)
	r.buf[r.head] = v
	r.n++
}

// popFront returns the oldest value; the ring must not be empty.
func (r *ring[T]) popFront() T {
	var zero T
	v := r.buf[r.head]
	r.buf[r.head] = zero // keep nothing alive
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	if r.n == 0 && len(r.buf) > ringKeep {
		*r = ring[T]{}
	}
	return v
}

// front returns the oldest value without removing it; the ring must not be empty.
func (r *ring[T]) front() T { return r.buf[r.head] }

func (r *ring[T]) grow() {
	if r.n < len(r.buf) {
		return
	}
	bigger := make([]T, max(ringMin, 2*len(r.buf)))
	k := copy(bigger, r.buf[r.head:])
	copy(bigger[k:], r.buf[:r.head])
	r.buf, r.head = bigger, 0
}
