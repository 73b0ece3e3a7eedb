package show

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/transport"
)

const (
	redissonLease = 30 * time.Second // the default, renewed every third of it
	// idleError covers the whole seconds of CLIENT LIST and the server's cached clock.
	idleError = 1100 * time.Millisecond
)

// guess is the client that probably holds a lock.
type guess struct {
	Address string `json:"address"`
	Name    string `json:"name,omitempty"`
}

func (g *guess) String() string {
	who := sanitize.Word(g.Address)
	if g.Name != "" {
		who += ", name " + strconv.QuoteToGraphic(sanitize.Truncate(g.Name, cli.Columns))
	}
	return "probably a connection of " + who + ", if the holder is alive: its last script ran when the lease was last set"
}

// guessClient sets ClientGuess if the age of the lease fits the last script of a single client.
func (s *status) guessClient(ctx context.Context, srv *connect.Server, client *redlatch.Client) {
	if s.ReplicaOf != "" || len(s.Holders) != 1 || s.Holders[0].Kind != "redisson" || s.TTLMillis == nil || !recent(leaseAge(*s.TTLMillis)) {
		return
	}
	// After it, the last command of client is not a script.
	last := &transport.Call{Command: "PTTL", NumKeys: 1, Args: []any{s.Name}}
	_, _ = mux.Begin(engine.EngineOf(client).Transport, last).Wait(ctx)
	masters, _ := srv.Masters(ctx)
	for _, m := range masters {
		_ = connect.Use(ctx, m.Dial, func(c redis.Conn) error {
			asked := time.Now()
			left, err := redis.Int64(c.Do("PTTL", s.Name))
			if age := leaseAge(left); err == nil && left <= *s.TTLMillis && recent(age) { // otherwise MOVED, or set again
				list, _ := redis.String(c.Do("CLIENT", "LIST", "TYPE", "normal"))
				s.ClientGuess = guessFrom(list, age, age+time.Since(asked))
			}
			return err
		})
	}
}

func leaseAge(left int64) time.Duration { return redissonLease - limits.FromMillis(left) }

func recent(age time.Duration) bool { return age >= 0 && age <= redissonLease/3+inspect.RenewalSlack }

// guessFrom returns the client whose last script ran between from and to ago, or nil if there are none or several.
func guessFrom(list string, from, to time.Duration) (found *guess) {
	connections, fit := map[guess]int{}, map[guess]bool{}
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(word, "=")
			fields[key] = value
		}
		addr := fields["addr"]
		seconds, err := strconv.ParseInt(fields["idle"], 10, 32)
		if err != nil || addr == "" || !strings.Contains("redisson", strings.ToLower(fields["lib-name"])) { // Redisson sends none
			continue
		}
		if host, _, err := net.SplitHostPort(addr); err == nil {
			addr = host
		}
		of, idle := guess{addr, fields["name"]}, time.Duration(seconds)*time.Second
		connections[of]++
		switch fields["cmd"] {
		case "eval", "evalsha", "wait": // with replicas, Redisson sends WAIT after a script
			fit[of] = fit[of] || idle > from-idleError && idle < to+idleError
		}
	}
	for of, fits := range fit {
		// A Redlatch client has one connection for commands, Redisson several.
		if !fits || connections[of] < 2 {
			continue
		}
		if found != nil {
			return nil
		}
		found = &of
	}
	return found
}
