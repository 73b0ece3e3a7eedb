package failover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

const (
	// hurry is how long Master waits for more answers after the first.
	hurry     = 250 * time.Millisecond
	knownMost = 32
)

// Sentinels queries Sentinels for the master. It is safe for concurrent use.
type Sentinels struct {
	name string
	dial func(ctx context.Context, addr string) (redis.Conn, error)

	given []string

	mu      sync.Mutex // not held across I/O
	learned []string   // others, in the order in which they were last named or last answered
}

// NewSentinels returns a Sentinels that queries the Sentinels at addrs, in the form host:port, and
// others that they know.
func NewSentinels(name string, addrs []string, dial func(ctx context.Context, addr string) (redis.Conn, error)) *Sentinels {
	return &Sentinels{name: name, dial: dial, given: slices.Clone(addrs)}
}

// word is one Sentinel's answer.
type word struct {
	from, master string
	epoch        int64
	others       []string
	err          error
}

// Master returns the master's address in the form host:port. It queries all Sentinels concurrently.
// Among the answers that arrive within 250 ms of the first, it uses the one with the highest epoch,
// because a partitioned Sentinel may still name the former master.
func (s *Sentinels) Master(ctx context.Context) (string, error) {
	addrs := s.known()
	if len(addrs) == 0 {
		return "", errors.New("no Sentinel is known")
	}
	came := make(chan word, len(addrs))
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, addr := range addrs {
		asking.Go(func() { came <- s.ask(ctx, addr) })
	}
	var best word
	var errs []error
	var late <-chan time.Time // set by the first answer
	for range addrs {
		select {
		case w := <-came:
			switch {
			case w.err != nil:
				errs = append(errs, fmt.Errorf("sentinel %s: %w", w.from, w.err))
				continue
			case best.master == "" || w.epoch > best.epoch:
				best = w
			}
			s.learn(append(w.others, w.from))
			if late == nil {
				late = time.After(hurry)
			}
		case <-late:
			return best.master, nil
		case <-ctx.Done():
			return "", errors.Join(append(errs, context.Cause(ctx))...)
		}
	}
	if best.master == "" {
		return "", errors.Join(errs...)
	}
	return best.master, nil
}

func (s *Sentinels) known() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.given, s.learned)
}

func (s *Sentinels) learn(addrs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, addr := range addrs {
		if slices.Contains(s.given, addr) {
			continue
		}
		if i := slices.Index(s.learned, addr); i >= 0 {
			s.learned = slices.Delete(s.learned, i, i+1)
		}
		s.learned = append(s.learned, addr)
	}
	if over := len(s.given) + len(s.learned) - knownMost; over > 0 {
		s.learned = slices.Delete(s.learned, 0, min(over, len(s.learned)))
	}
}

func (s *Sentinels) ask(ctx context.Context, addr string) word {
	w := word{from: addr}
	conn, err := s.dial(ctx, addr)
	if err != nil {
		w.err = err
		return w
	}
	// Closing conn ends its commands.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		_ = conn.Close()
	}()
	// Read the epoch first, because it does no harm if the address is newer than the epoch. During
	// a failover, this reply contains the former master's address, so it isn't used.
	reply, err := conn.Do("SENTINEL", "MASTER", s.name)
	if err != nil {
		w.err = err
		return w
	}
	known, err := redis.StringMap(reply, nil)
	if err != nil {
		w.err = fmt.Errorf("%w to SENTINEL MASTER: %w", transport.ErrBadReply, err)
		return w
	}
	w.epoch, _ = strconv.ParseInt(known["config-epoch"], 10, 64)
	at, err := redis.Strings(conn.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.name))
	switch {
	case err != nil:
		w.err = err
	case len(at) != 2 || at[0] == "" || at[1] == "":
		w.err = fmt.Errorf("%w to SENTINEL GET-MASTER-ADDR-BY-NAME", transport.ErrBadReply)
	default:
		w.master = net.JoinHostPort(at[0], at[1])
		w.others = othersOf(conn.Do("SENTINEL", "SENTINELS", s.name))
	}
	return w
}

func othersOf(reply any, _ error) (addrs []string) {
	all, err := redis.Values(reply, nil)
	if err != nil {
		return nil
	}
	for _, one := range all {
		fields, err := redis.StringMap(one, nil)
		if err == nil && fields["ip"] != "" && fields["port"] != "" {
			addrs = append(addrs, net.JoinHostPort(fields["ip"], fields["port"]))
		}
	}
	return addrs
}
