package cluster

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// redirection is where a node sends a call.
type redirection struct {
	slot   int
	addr   string // "": the node does not know it yet
	asking bool   // only this call: the slot is on its way there
}

// redirected returns where err sends a call that the node at from refused; ok is false
// when it sends it nowhere.
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

// outdated reports whether err shows that the table of slots may be.
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
