package failover

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/scripted"
)

// masters simulates the servers that Sentinels may name. It embeds a Failover that connects to
// them.
type masters struct {
	*Failover
	t *testing.T

	mu    sync.Mutex // guards the fields below
	named string     // the Sentinels' answer
	asked int
	dials []string // dialed addresses

	server scripted.Server // all of them
}

// inFailover runs body in a synctest bubble, in which a:1 is the master and a subscription exists.
func inFailover(t *testing.T, body func(m *masters)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &masters{t: t, named: "a:1"}
		m.server.Answer(answer)
		m.Failover = New(Config{Master: m.master, Dial: m.dialTo, Conn: redisconn.Config{
			Command: 3 * time.Second, DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		}})
		defer func() { assert.NoError(t, m.Close()) }()
		sub, err := m.Subscribe(t.Context(), "channel")
		require.NoError(t, err)
		synctest.Wait() // until it listens to the Sentinels
		body(m)
		sub.Close()
	})
}

func (m *masters) master(context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	return m.named, nil
}

func (m *masters) dialTo(ctx context.Context, addr string) (redis.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials = append(m.dials, addr)
	return m.server.Dial(ctx)
}

// answer answers PING and subscriptions.
func answer(_ int, args []string) (reply string) {
	if args[0] == "PING" {
		return "+PONG\r\n"
	}
	for _, name := range args[1:] {
		reply += "*3\r\n" + redistest.Bulk(strings.ToLower(args[0])) + redistest.Bulk(name) + ":1\r\n"
	}
	return reply
}

// says publishes a message from a Sentinel that names a master, and sleeps for a second.
func (m *masters) says(master string, epoch int) {
	host, port, _ := net.SplitHostPort(master)
	text := fmt.Sprintf("10.0.0.9,26379,id,%d,m,%s,%s,%d", epoch, host, port, epoch)
	m.server.Say(0, redistest.Array("message", Channel, text))
	time.Sleep(time.Second)
}

// name sets the Sentinels' answer, and returns how often they were queried.
func (m *masters) name(addr string) (asked int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.named = addr
	return m.asked
}

func (m *masters) dialled() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.dials...)
}

func TestSwitchDetectedAfterSentinelReset(t *testing.T) {
	inFailover(t, func(m *masters) {
		t := m.t
		m.says("a:1", 5)
		for range 15 {
			m.says("a:1", 0)
		}
		asked := m.name("b:1")
		require.Less(t, asked, 5, "they are received")
		m.says("b:1", 1)
		require.Equal(t, []string{"a:1", "b:1"}, m.dialled())
		for range 15 {
			m.says("b:1", 1)
		}
		require.Less(t, m.name("b:1"), asked+5)
	})
}

// New Sentinels start with epoch 0 and may have reached the last one.
func TestSwitchRightAfterSentinelResetIsDetectedLater(t *testing.T) {
	t.Parallel()
	for what, last := range map[string]int{"the same epoch": 1, "a lower epoch": 5} {
		t.Run(what, func(t *testing.T) {
			inFailover(t, func(m *masters) {
				m.says("a:1", last)
				m.name("b:1")
				for range 15 {
					m.says("b:1", 1)
				}
				require.Equal(m.t, []string{"a:1", "b:1"}, m.dialled())
			})
		})
	}
}

func TestStaleSentinelMovesNoConnection(t *testing.T) {
	inFailover(t, func(m *masters) {
		t := m.t
		m.says("a:1", 5)
		asked := m.name("a:1")
		for range 30 {
			m.says("b:1", 4)
			m.says("a:1", 5)
		}
		require.Equal(t, asked, m.name("a:1"), "it is not heeded")
		for range 60 {
			m.says("b:1", 4) // the others are silent for a minute, but answer
		}
		require.Less(t, m.name("a:1"), asked+60)
		m.says("a:1", 5)
		require.Equal(t, []string{"a:1"}, m.dialled())
	})
}

func TestDifferentServerNamesCauseNoRepeatedQueries(t *testing.T) {
	inFailover(t, func(m *masters) {
		m.says("a:1", 1)
		asked := m.name("a:1")
		for range 30 {
			m.says("host-a:1", 1)
			m.says("a:1", 1)
		}
		require.Equal(m.t, asked, m.name("a:1"))
	})
}
