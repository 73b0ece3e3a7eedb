package rueidis

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// look is how often a watch compares. It asks nobody: the client has the answer.
const look = 100 * time.Millisecond

// watch drops a transport's connections when Sentinel has made another server the
// master. The client turns to the new one by itself, but connections that were taken
// from it stay with the old one, which goes on taking writes, all of them lost, until
// Sentinel makes it a replica: ten seconds later, in a failover that was measured.
type watch struct {
	quit, done chan struct{}
}

func watchMaster(client rueidis.Client, c *conns, logger *slog.Logger) *watch {
	w := &watch{quit: make(chan struct{}), done: make(chan struct{})}
	was := nodes(client)
	go func() {
		defer close(w.done)
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-w.quit:
				return
			}
			is := nodes(client)
			if is == was {
				continue
			}
			logger.Warn("redlatch: Sentinel has named another master", "old", was, "new", is, "connections", c.drop(errSwitched))
			was = is
		}
	}()
	return w
}

// stop ends the watch. There may be none.
func (w *watch) stop() {
	if w == nil {
		return
	}
	close(w.quit)
	<-w.done
}

// nodes returns the addresses that client leads to, in one text.
func nodes(client rueidis.Client) string {
	return strings.Join(slices.Sorted(maps.Keys(client.Nodes())), " ")
}
