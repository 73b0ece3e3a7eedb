package goredis

import (
	"net"
	"strconv"
	"strings"
)

// helloChannel is where every Sentinel says, on the master and on all replicas, every
// two seconds and at once when something has changed, who it takes for the master.
const helloChannel = "__sentinel__:hello"

// claim is who a Sentinel takes for the master.
type claim struct {
	name  string // of the master, as the Sentinels call it
	addr  string // host:port
	epoch int64  // grows with every switch
}

// parseHello reads a Sentinel's message: its own address, port, id and epoch, and then
// the master's name, address, port and epoch.
func parseHello(payload string) (claim, bool) {
	parts := strings.Split(payload, ",")
	if len(parts) != 8 {
		return claim{}, false
	}
	epoch, err := strconv.ParseInt(parts[7], 10, 64)
	if err != nil {
		return claim{}, false
	}
	return claim{name: parts[4], addr: net.JoinHostPort(parts[5], parts[6]), epoch: epoch}, true
}

// claims is what was last said of each master: Sentinels of several sets may watch one
// server under several names.
type claims map[string]claim

// take reports whether c is the first word of a master, or tells of a switch. Words
// from before a switch are older, and neither.
func (cs claims) take(c claim) (first, switched bool) {
	last, known := cs[c.name]
	if known && (c.epoch < last.epoch || c.addr == last.addr) {
		return false, false
	}
	cs[c.name] = c
	return !known, known
}
