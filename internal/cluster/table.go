package cluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

const slots = 16384

type span struct {
	first, last int
	master      string
	replicas    []string
}

// spansOf decodes the CLUSTER SLOTS reply of the node at from. If a host is missing, it is that
// node's host.
func spansOf(reply any, from string) ([]span, error) {
	all, ok := reply.([]any)
	if !ok || len(all) > slots {
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

// address joins host and port. If host is empty, it uses the host in from. If host is "?", it
// returns "".
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

type redirection struct {
	slot   int
	addr   string // "" if the node does not know it yet
	asking bool   // the redirection applies to this call only
}

// redirected decodes err, which the node at from returned. ok reports whether it is a redirection.
func redirected(err error, from string) (r redirection, ok bool) {
	var refusal *transport.ServerError
	if !errors.As(err, &refusal) {
		return r, false
	}
	words := strings.Fields(refusal.Text)
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return r, false
	}
	r.asking = words[0] == "ASK"
	if r.slot, err = strconv.Atoi(words[1]); err != nil || r.slot < 0 || r.slot >= slots {
		return r, false
	}
	i := strings.LastIndexByte(words[2], ':')
	if i < 0 {
		return r, false
	}
	if r.addr = address(strings.Trim(words[2][:i], "[]"), words[2][i+1:], from); r.addr == "" {
		return r, true
	}
	_, _, err = net.SplitHostPort(r.addr)
	return r, err == nil
}

func outdated(err error) bool {
	if errors.Is(err, transport.ErrNotSent) || errors.Is(err, transport.ErrUncertain) {
		return true
	}
	var refusal *transport.ServerError
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Code() {
	case "CLUSTERDOWN", "MASTERDOWN", "READONLY", "LOADING":
		return true
	}
	return false
}
