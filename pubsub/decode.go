package pubsub

// pushKind is what a reply on a subscribed connection tells.
type pushKind uint8

const (
	unknown pushKind = iota
	message
	subscribed
	unsubscribed
	pong
)

// pushKinds are the first words of the replies that matter. Channels of a shard
// have words of their own; they mean the same here.
var pushKinds = map[string]pushKind{
	"message":      message,
	"smessage":     message,
	"subscribe":    subscribed,
	"ssubscribe":   subscribed,
	"unsubscribe":  unsubscribed,
	"sunsubscribe": unsubscribed,
	"pong":         pong,
}

// push is one reply, decoded. channel and payload are set where the kind has
// them.
type push struct {
	kind             pushKind
	channel, payload []byte
}

// decode understands what redigo's Receive returns. A PING is answered with an
// array on a connection that has subscriptions, and with a plain string on one
// that has none. What is not understood is unknown, and harmless.
func decode(reply any) push {
	switch r := reply.(type) {
	case string:
		return push{kind: pong}
	case []byte:
		return push{kind: pong}
	case []any:
		return decodeArray(r)
	}
	return push{}
}

func decodeArray(r []any) push {
	if len(r) < 2 {
		return push{}
	}
	word, _ := r[0].([]byte)
	p := push{kind: pushKinds[string(word)]}
	p.channel, _ = r[1].([]byte)
	if p.kind != message {
		return p
	}
	if len(r) != 3 {
		return push{}
	}
	p.payload, _ = r[2].([]byte)
	return p
}
