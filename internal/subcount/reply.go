package subcount

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

// Version 2 is that of the protocol which the connection has already.
var helloArgs = []any{"2"}

var (
	errCluster   = errors.New("the server is part of a cluster, and its other nodes are not known")
	errNoReplica = errors.New("the address that the master gives leads to a server that is no replica")
	errNoMaster  = errors.New("the server is no master")
	errTwins     = errors.New("two replicas have the same address")
)

// helloField returns the text of a field in the reply to HELLO, "" if there is
// none.
func helloField(reply any, name string) string {
	fields, _ := reply.([]any)
	for pair := range slices.Chunk(fields, 2) {
		if len(pair) == 2 && text(pair[0]) == name {
			return text(pair[1])
		}
	}
	return ""
}

// isAlone checks that the server that answered HELLO is in no cluster.
func isAlone(hello any) error {
	switch mode := helloField(hello, "mode"); mode {
	case "standalone":
		return nil
	case "cluster":
		return errCluster
	default:
		return fmt.Errorf("%w: mode %s", transport.ErrBadReply, limits.Quote(mode))
	}
}

// isReplica checks that it is a replica.
func isReplica(hello any) error {
	if helloField(hello, "role") != "replica" {
		return errNoReplica
	}
	return nil
}

// replicasOf returns the addresses in a master's reply to ROLE: "master", its
// offset, and for each replica that is in step its host, port and offset.
func replicasOf(role any) ([]string, error) {
	parts, ok := role.([]any)
	if !ok || len(parts) == 0 {
		return nil, transport.ErrBadReply
	}
	if name := text(parts[0]); name != "master" {
		return nil, fmt.Errorf("%w, but a %s", errNoMaster, limits.Quote(name))
	}
	if len(parts) != 3 {
		return nil, transport.ErrBadReply
	}
	replicas, ok := parts[2].([]any)
	if !ok {
		return nil, transport.ErrBadReply
	}
	addrs := make([]string, 0, len(replicas))
	for _, replica := range replicas {
		addr, err := address(replica)
		if err != nil {
			return nil, err
		}
		if slices.Contains(addrs, addr) {
			return nil, fmt.Errorf("%w, %s: one of them cannot be asked", errTwins, addr)
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

func address(replica any) (string, error) {
	parts, ok := replica.([]any)
	if !ok || len(parts) < 2 {
		return "", transport.ErrBadReply
	}
	host, port := text(parts[0]), text(parts[1])
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return "", fmt.Errorf("%w: a replica at %s", transport.ErrBadReply, limits.Quote(net.JoinHostPort(host, port)))
	}
	return net.JoinHostPort(host, port), nil
}

// numbers returns the n numbers in a reply to PUBSUB NUMSUB: channels and numbers
// in turn.
func numbers(reply any, n int) ([]int64, error) {
	pairs, ok := reply.([]any)
	if !ok || len(pairs) != 2*n {
		return nil, transport.ErrBadReply
	}
	counts := make([]int64, n)
	for i := range counts {
		if counts[i], ok = pairs[2*i+1].(int64); !ok || counts[i] < 0 {
			return nil, transport.ErrBadReply
		}
	}
	return counts, nil
}

// text returns a reply that is text, and "" for others.
func text(reply any) string {
	switch t := reply.(type) {
	case string:
		return t
	case []byte:
		return string(t)
	case int64:
		return strconv.FormatInt(t, 10)
	}
	return ""
}
