package sentinel

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Channel is where every Sentinel says, on the master and on all replicas, every two
// seconds and at once when something has changed, which server it takes for the
// master.
const Channel = "__sentinel__:hello"

// Claim is the server that a Sentinel takes for the master.
type Claim struct {
	// Name is the master's, as the Sentinels call it.
	Name string
	// Addr is host:port.
	Addr string
	// Epoch grows with every switch.
	Epoch int64
}

// Parse reads a Sentinel's message: its own address, port, id and epoch, and then the
// master's name, address, port and epoch. ok is false when it is no such message.
func Parse(payload string) (c Claim, ok bool) {
	parts := strings.Split(payload, ",")
	if len(parts) != 8 {
		return Claim{}, false
	}
	epoch, err := strconv.ParseInt(parts[7], 10, 64)
	if err != nil {
		return Claim{}, false
	}
	return Claim{Name: parts[4], Addr: net.JoinHostPort(parts[5], parts[6]), Epoch: epoch}, true
}

// forgetAfter is how long a claim counts that no Sentinel repeats, five times the pause
// between two of its messages. Sentinels that are set up anew begin again with epoch 0.
const forgetAfter = 10 * time.Second

// Said is what was last said of each master, by name: Sentinels of several sets may
// watch one server. It is not safe for concurrent use.
type Said map[string]said

type said struct {
	Claim
	at time.Time
}

// Take notes c, which was received at now. It reports whether that is the first word of a
// master, or tells of a switch. Words from before a switch are neither, and are not noted, nor
// are those that call the same epoch's master otherwise, unless no others have come for a while:
// then they are the first.
func (s Said) Take(c Claim, now time.Time) (first, switched bool) {
	last, known := s[c.Name]
	if c.Epoch == last.Epoch && c.Addr != last.Addr {
		last.Epoch++ // no switch is between them: c counts as from before
	}
	if known && c.Epoch < last.Epoch {
		if now.Sub(last.at) < forgetAfter {
			return false, false
		}
		known = false
	}
	s[c.Name] = said{c, now}
	return !known, known && c.Epoch > last.Epoch && c.Addr != last.Addr
}
