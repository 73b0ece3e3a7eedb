package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// counters are goroutines that count in one key, each under a lock, until it says that
// it is over.
type counters struct {
	key   string
	total int64        // over when the key has it
	done  atomic.Int64 // rounds
	ended chan error   // of each of them
}

func newCounters(key string, total int64, n int) *counters {
	return &counters{key: key, total: total, ended: make(chan error, n)}
}

// begin begins one of them. The connection is its own.
func (c *counters) begin(ctx context.Context, lock doer, conn redis.Conn) {
	go func() { c.ended <- c.countUp(ctx, lock, conn) }()
}

func (c *counters) countUp(ctx context.Context, lock doer, conn redis.Conn) (err error) {
	for over := false; !over && err == nil; {
		err = lock.Do(ctx, func(context.Context) error {
			count, err := redis.Int64(conn.Do("GET", c.key))
			if err != nil && !errors.Is(err, redis.ErrNil) {
				return err
			}
			if over = count >= c.total; over {
				return nil
			}
			c.done.Add(1)
			_, err = conn.Do("SET", c.key, strconv.FormatInt(count+1, 10))
			return err
		})
	}
	return err
}

// end returns the first error, when all have ended.
func (c *counters) end() (first error) {
	for range cap(c.ended) {
		first = cmp.Or(first, <-c.ended)
	}
	return first
}

func (c *counters) rounds(*testing.T) int64 { return c.done.Load() }

func (c *counters) wait(t *testing.T) {
	t.Helper()
	require.NoError(t, c.end())
}

// What a process that counts is asked, a line each, and what it answers.
const (
	askRounds = "rounds" // the rounds done by now
	askEnd    = "end"    // the outcome, when all have ended
)

// countLoop is what a Go process does that counts: it has as many clients and goroutines
// as the Java process.
func countLoop(url string, commands <-chan string) error {
	ctx := context.Background()
	all := newCounters(os.Getenv(memberCounts), fleetOver, fleetClients*fleetThreads)
	for range fleetClients {
		client, err := redlatch.Open(ctx, url)
		if err != nil {
			return err
		}
		lock := rlock.New(client, os.Getenv(memberLock))
		for range fleetThreads {
			conn, err := redis.DialURL(url)
			if err != nil {
				return err
			}
			all.begin(ctx, lock, conn)
		}
	}
	for what := range commands {
		if what == askRounds {
			fmt.Println(what, all.done.Load())
		} else {
			fmt.Println(what, all.end())
		}
	}
	return nil
}

// countingProcess is a Go process that counts.
type countingProcess struct{ *goMember }

// startCounters begins the Go side of a fleet in a process of its own, as the Java side has one:
// in that of the tests they would wait for whatever else is tested.
func startCounters(t *testing.T, f *fleet) countingProcess {
	t.Helper()
	return countingProcess{startGo(t, f.server.URL(), f.name, memberCounts+"="+f.key)}
}

func (p countingProcess) rounds(t *testing.T) (n int64) {
	t.Helper()
	p.send(t, askRounds)
	select {
	case line := <-p.output:
		must(fmt.Sscanf(line.text, askRounds+" %d", &n))(t)
	case <-time.After(atMost):
		require.FailNow(t, "the Go process does not say how many rounds it has done")
	}
	return n
}

func (p countingProcess) wait(t *testing.T) {
	t.Helper()
	p.send(t, askEnd)
	p.expect(t, askEnd+" <nil>", atMost)
}
