package pubsub

import "time"

// batchSize is how many channels one SUBSCRIBE or UNSUBSCRIBE names at most.
const batchSize = 256

// kind is the kind of an op.
type kind uint8

const (
	ping kind = iota
	subscribe
	unsubscribe
	kinds // how many there are
)

// String returns the command's name; in front of it stands an S where channels are
// those of a shard.
func (k kind) String() string {
	return [kinds]string{"PING", "SUBSCRIBE", "UNSUBSCRIBE"}[k]
}

// pingKind says whether a PING is due, and which.
type pingKind uint8

const (
	noPing    pingKind = iota
	greeting           // the first command on a connection
	keepAlive          // the connection has been silent
)

// op is one command on its way: sent, or about to be, and not fully answered.
type op struct {
	kind     kind
	greeting bool          // a PING, the first one on its connection
	again    bool          // refused for now, and its channel was refused before
	args     []any         // the names of all its channels; never changes
	rest     []*channel    // the channels not yet acknowledged, in the order sent
	sent     time.Duration // since the connection was made
}

func (o *op) names() []any {
	if len(o.rest) == 0 {
		return nil
	}
	args := make([]any, len(o.rest))
	for i, c := range o.rest {
		args[i] = c.name
	}
	return args
}

// batches gathers channels into commands.
type batches struct {
	most int // channels that one command may name
	ops  []*op
	open [kinds]*op // has room left
}

func (b *batches) add(c *channel) {
	k := unsubscribe
	if c.asked {
		k = subscribe
	}
	o := b.open[k]
	if o == nil || len(o.rest) >= b.most || c.alone {
		o = &op{kind: k}
		b.ops = append(b.ops, o)
		if !c.alone {
			b.open[k] = o
		}
	}
	o.rest = append(o.rest, c)
}
