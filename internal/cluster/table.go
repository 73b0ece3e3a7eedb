package cluster

import (
	"fmt"
	"net"
	"strconv"

	"github.com/redlatch/redlatch/transport"
)

// slots is how many a cluster has.
const slots = 16384

// span is a range of slots and the nodes that serve it.
type span struct {
	first, last int
	master      string
	replicas    []string
}

// spansOf returns what a node said in answer to CLUSTER SLOTS. Nodes that do not know
// their own host mean the one that they were reached at.
func spansOf(reply any, from string) ([]span, error) {
	all, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w to CLUSTER SLOTS", transport.ErrBadReply)
	}
	spans := make([]span, 0, len(all))
	for _, one := range all {
		s, err := spanOf(one, from)
		if err != nil {
			return nil, err
		}
		if s.master != "" {
			spans = append(spans, s)
		}
	}
	return spans, nil
}

func spanOf(reply any, from string) (s span, err error) {
	parts, _ := reply.([]any)
	if len(parts) < 3 {
		return s, fmt.Errorf("%w to CLUSTER SLOTS", transport.ErrBadReply)
	}
	first, okFirst := parts[0].(int64)
	last, okLast := parts[1].(int64)
	if !okFirst || !okLast || first < 0 || last < first || last >= slots {
		return s, fmt.Errorf("%w to CLUSTER SLOTS", transport.ErrBadReply)
	}
	s.first, s.last = int(first), int(last)
	for i, one := range parts[2:] {
		node, _ := one.([]any)
		if len(node) < 2 {
			return s, fmt.Errorf("%w to CLUSTER SLOTS", transport.ErrBadReply)
		}
		port, _ := node[1].(int64)
		addr := address(text(node[0]), strconv.FormatInt(port, 10), from)
		switch {
		case i == 0:
			s.master = addr
		case addr != "":
			s.replicas = append(s.replicas, addr)
		}
	}
	return s, nil
}

// address joins host and port. An empty host is that of the node that said so, one
// that the node does not know either makes no address.
func address(host, port, from string) string {
	switch host {
	case "":
		host, _, _ = net.SplitHostPort(from)
	case "?":
		return ""
	}
	return net.JoinHostPort(host, port)
}

func text(reply any) string {
	switch t := reply.(type) {
	case string:
		return t
	case []byte:
		return string(t)
	}
	return ""
}
