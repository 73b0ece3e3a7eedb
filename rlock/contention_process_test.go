package rlock_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// The environment of a test binary that is to be one of several processes that
// want a lock.
const (
	contenderURL  = "RLOCK_TEST_CONTENDER_URL"
	contenderLock = "RLOCK_TEST_CONTENDER_LOCK"
	contenderN    = "RLOCK_TEST_CONTENDER_N"
)

// contend takes the lock again and again, and returns the process's exit code.
func contend(url string) int {
	if err := contendFor(url, os.Getenv(contenderLock), os.Getenv(contenderN)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func contendFor(url, name, times string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, noPoll())
	if err != nil {
		return err
	}
	conn, err := redis.DialURL(url)
	if err != nil {
		return err
	}
	l := rlock.New(client, name)
	for range n {
		err := l.Do(ctx, func(context.Context) error { return countUp(conn, name+":count") })
		if err != nil {
			return err
		}
	}
	if err := conn.Close(); err != nil {
		return err
	}
	return client.Close()
}

// countUp is not atomic: two at once would lose a count, or meet each other in
// the gauge.
func countUp(conn redis.Conn, key string) error {
	inside, err := redis.Int(conn.Do("INCR", key+":inside"))
	if err != nil || inside != 1 {
		return fmt.Errorf("inside: %d %w", inside, err)
	}
	n, err := redis.Int(conn.Do("GET", key))
	if err != nil {
		return err
	}
	if _, err := conn.Do("SET", key, n+1); err != nil {
		return err
	}
	_, err = conn.Do("DECR", key+":inside")
	return err
}

func TestU11SeveralProcessesLetOneInAtATime(t *testing.T) {
	t.Parallel()
	const processes, each = 4, 50
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	srv.Do(t, "SET", name+":count", 0)
	cmds := make([]*exec.Cmd, processes)
	for i := range cmds {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(),
			contenderURL+"="+srv.URL(), contenderLock+"="+name, contenderN+"="+strconv.Itoa(each))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		require.NoError(t, cmd.Start())
		cmds[i] = cmd
	}
	for _, cmd := range cmds {
		assert.NoError(t, cmd.Wait())
	}
	require.Equal(t, strconv.Itoa(processes*each), text(t, srv, "GET", name+":count"))
	require.EqualValues(t, 0, srv.Do(t, "EXISTS", name))
}
