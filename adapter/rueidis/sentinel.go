package rueidis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/sentinel"
	"github.com/redlatch/redlatch/transport"
)

const (
	// look is how often a watch looks where the client leads. It asks nobody: the
	// client has the answer.
	look = 100 * time.Millisecond
	// relisten is the pause until Sentinels are listened to again.
	relisten = time.Second
	// demoted is how long Sentinels may take to make a former master a replica, which
	// takes no locks.
	demoted = 15 * time.Second
)

// errLags says that the client leads to a former master.
var errLags = errors.New("rueidis: Sentinel has named another master, to which the client does not lead yet")

// watch keeps a transport from a master that Sentinel has replaced. Such a server goes
// on working, and takes locks that nobody else sees, until Sentinel makes it a replica:
// ten seconds later, in a failover that was measured. The client turns to the new one
// when the one Sentinel that it listens to tells, and connections that were taken from
// it never do. So a watch hears what all Sentinels say on the master itself.
//
//	with the client's master ──a Sentinel names another, or the client turns──▶ drop
//	          ▲                                                                  │
//	          │                 ┌── straight to the one that is named, if that ◀─┤
//	          └── client turns ─┤   is possible (WithClientOption)               │
//	                            └── nowhere ◀────────────────────────────────────┘
type watch struct {
	client rueidis.Client
	conns  *conns
	logger *slog.Logger
	quit   chan struct{}
	done   chan struct{}
	said   claims
	seen   string // where the client led when that was looked at last; run's

	mu     sync.Mutex // guards what follows
	leads  string     // where the connections that are made now lead
	direct string     // the master that was named and that the client does not lead to
}

// newWatch returns a watch that has not begun.
func newWatch(client rueidis.Client, c *conns, logger *slog.Logger) *watch {
	leads := nodes(client)
	return &watch{
		client: client, conns: c, logger: logger, leads: leads, seen: leads,
		quit: make(chan struct{}), done: make(chan struct{}),
		said: claims{wake: make(chan struct{}, 1)},
	}
}

// begin watches, and listens over r.
func (w *watch) begin(r *redisconn.Redigo) { go w.run(r) }

// stop ends the watch. There may be none.
func (w *watch) stop() {
	if w != nil {
		close(w.quit)
		<-w.done
	}
}

func (w *watch) run(r *redisconn.Redigo) {
	defer close(w.done)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	again := time.NewTimer(0) // to listen
	defer again.Stop()
	stop := func() {}
	defer func() { stop() }()
	var barred <-chan time.Time
	for {
		select {
		case <-w.quit:
			return
		case <-again.C:
			stop = r.Listen(sentinel.Channel, &w.said)
		case <-ticker.C:
		case <-barred:
			w.pardon()
			barred = nil
		case <-w.said.wake:
			if err := w.said.failure(); err != nil {
				w.deaf(err)
				again.Reset(relisten)
			}
		}
		if w.turn() {
			barred = time.After(demoted)
		}
	}
}

// turn compares where the connections lead with where they should, and drops those that
// lead elsewhere. It reports whether the client lags.
func (w *watch) turn() (lags bool) {
	client := nodes(w.client)
	if client != w.seen {
		w.seen = client
		w.said.settle() // it turns to who says that it is the master
	}
	named := w.said.switched()
	w.mu.Lock()
	should, direct := client, ""
	if named != "" && !strings.Contains(" "+client+" ", " "+named+" ") {
		should, direct = named, named
	}
	was := w.leads
	if should == was {
		w.direct = direct
		w.mu.Unlock()
		return false
	}
	w.leads, w.direct = should, direct
	w.mu.Unlock()
	w.logger.Warn("redlatch: Sentinel has named another master", "old", was, "new", should,
		"client", client, "connections", w.conns.drop(errSwitched))
	return direct != ""
}

// pardon goes back to where the client leads, although a Sentinel has named another
// master long ago: if that was true, the server there is a replica by now.
func (w *watch) pardon() { w.said.forget() }

// named returns the master that was named and that the client does not lead to, "" if
// there is none.
func (w *watch) named() string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.direct
}

// deaf tells of a user who may not hear the Sentinels.
func (w *watch) deaf(err error) {
	if transport.IsCode(err, "NOPERM") && w.said.told() {
		w.logger.Warn("redlatch: the Sentinels' messages cannot be heard: a switch of masters is noticed when the client notices it",
			"channel", sentinel.Channel, "error", err)
	}
}

// nodes returns the addresses that client leads to, in one text.
func nodes(client rueidis.Client) string {
	return strings.Join(slices.Sorted(maps.Keys(client.Nodes())), " ")
}

// master returns a client to the master, and what ends it with its connection, nil if
// that is nothing.
func (d *dialer) master(ctx context.Context) (client rueidis.Client, end func(), err error) {
	named := d.watch.named()
	switch {
	case named == "":
		return d.client, nil, nil
	case d.server == nil:
		return nil, nil, fmt.Errorf("%w: %s", errLags, named)
	}
	client, err = d.server(ctx, named)
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}
