package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster in memory and a client of it. The value of a key is the number of its writes.
type world struct {
	*Cluster
	*testing.T

	mu      sync.Mutex // guards the fields below and the servers
	owner   [slots]string
	values  map[string]int64
	servers map[string]*server
	lacks   string // a command that the servers do not know
}

type server struct {
	w        *world
	addr     string
	down     bool
	silent   bool                 // it neither reads nor answers
	slow     time.Duration        // how long it takes to answer CLUSTER
	full     func(conns int) bool // whether it rejects the last of conns connections
	refuses  map[string]string    // error replies by command
	gate     chan struct{}        // if not nil, dials wait until it is closed
	lies     string               // the address to which it redirects all calls
	unready  string               // a key whose slot it does not serve yet
	lied     int
	conns    map[net.Conn]bool
	asked    []string
	asking   map[string]string // by key: the target of an ASK redirect
	replicas []string
	subs     map[string][]net.Conn // by kind and channel
	acks     int                   // replicas that have the writes
	hold     chan struct{}         // if not nil, WAIT waits until it is closed
}

// newWorld returns a cluster whose masters share the slots equally.
func newWorld(t *testing.T, publish string, masters ...string) *world {
	t.Helper()
	w := &world{T: t, values: map[string]int64{}, servers: map[string]*server{}}
	for i, addr := range masters {
		w.add(addr)
		for slot := slots * i / len(masters); slot < slots*(i+1)/len(masters); slot++ {
			w.owner[slot] = addr
		}
	}
	w.Cluster = New(Config{
		Seeds: masters, Dial: w.dial, Publish: publish,
		Conn: redisconn.Config{Command: 3 * time.Second, DialTimeout: 5 * time.Second},
	})
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

func (w *world) add(addr string) *server {
	s := &server{w: w, addr: addr, conns: map[net.Conn]bool{}, asking: map[string]string{}, subs: map[string][]net.Conn{}}
	w.servers[addr] = s
	return s
}

func (w *world) dial(ctx context.Context, addr string) (redis.Conn, error) {
	w.mu.Lock()
	s := w.servers[addr]
	gate := s.gate
	w.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.down {
		return nil, errors.New("connection refused")
	}
	if s.full != nil && s.full(len(s.conns)+1) {
		return nil, redis.Error("ERR max number of clients reached")
	}
	ours, theirs := net.Pipe()
	s.conns[theirs] = true
	go s.serve(theirs)
	return redis.NewConn(ours, 0, 0), nil
}

// do calls f with w.mu held.
func (w *world) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// move gives the slot of key to another node.
func (w *world) move(key, to string) { w.do(func() { w.owner[transport.HashSlot(key)] = to }) }

// takeOver gives all slots of a node to another. If from is "", these are the slots without a node.
func (w *world) takeOver(from, to string) {
	w.do(func() {
		for slot, addr := range w.owner {
			if addr == from {
				w.owner[slot] = to
			}
		}
	})
}

// kill stops a node and closes its connections.
func (w *world) kill(addr string) {
	w.do(func() {
		s := w.servers[addr]
		s.down = true
		for c := range s.conns {
			_ = c.Close()
		}
	})
}

func (s *server) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.w.do(func() {
			delete(s.conns, c)
			for key, all := range s.subs {
				s.subs[key] = slices.DeleteFunc(all, func(other net.Conn) bool { return other == c })
			}
		})
	}()
	r := bufio.NewReader(c)
	asking := false
	for {
		words, err := redistest.ReadCommand(r)
		if err != nil {
			return
		}
		s.await(words[0])
		s.delay(words[0])
		s.w.mu.Lock()
		reply := s.answer(c, words, asking)
		silent := s.silent
		s.asked = append(s.asked, words[0])
		s.w.mu.Unlock()
		asking = words[0] == "ASKING"
		if silent {
			continue
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

// delay delays the reply to CLUSTER.
func (s *server) delay(command string) {
	var d time.Duration
	s.w.do(func() { d = s.slow })
	if command == "CLUSTER" {
		time.Sleep(d)
	}
}

// await delays the reply to WAIT.
func (s *server) await(command string) {
	var hold chan struct{}
	s.w.do(func() { hold = s.hold })
	if command == "WAIT" && hold != nil {
		s.w.do(func() { s.asked = append(s.asked, "WAIT begun") })
		<-hold
	}
}

// answer returns the reply to a command. It is called with w.mu held.
func (s *server) answer(c net.Conn, words []string, asking bool) string {
	if words[0] == s.w.lacks {
		return "-ERR unknown command\r\n"
	}
	if refusal := s.refuses[words[0]]; refusal != "" {
		return "-" + refusal + "\r\n"
	}
	switch words[0] {
	case "PING", "ASKING":
		return "+PONG\r\n"
	case "CLIENT":
		if words[1] == "ID" {
			return ":7\r\n" // every node has a connection 7
		}
		return "-ERR no\r\n"
	case "CLUSTER":
		return s.slots()
	case "INCR":
		if refusal := s.redirect(words[1], asking); refusal != "" {
			return refusal
		}
		s.w.values[words[1]]++
		return fmt.Sprintf(":%d\r\n", s.w.values[words[1]])
	case "WAIT":
		return fmt.Sprintf(":%d\r\n", s.acks)
	case "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE":
		return s.listen(c, strings.ToLower(words[0]), words[1])
	case "PUBSUB":
		reply := fmt.Sprintf("*%d\r\n", 2*len(words[2:]))
		for _, channel := range words[2:] {
			reply += fmt.Sprintf("+%s\r\n:%d\r\n", channel, len(s.subs[words[1]+channel]))
		}
		return reply
	case "HELLO":
		return "*4\r\n+mode\r\n+cluster\r\n+role\r\n+replica\r\n"
	}
	return "-ERR what is " + words[0] + "\r\n"
}

func (s *server) slots() string {
	var spans []string
	for first := 0; first < slots; {
		owner, last := s.w.owner[first], first
		for last+1 < slots && s.w.owner[last+1] == owner {
			last++
		}
		if owner != "" {
			spans = append(spans, span2text(first, last, append([]string{owner}, s.w.servers[owner].replicas...)))
		}
		first = last + 1
	}
	return fmt.Sprintf("*%d\r\n%s", len(spans), strings.Join(spans, ""))
}

func span2text(first, last int, nodes []string) string {
	text := fmt.Sprintf("*%d\r\n:%d\r\n:%d\r\n", 2+len(nodes), first, last)
	for _, addr := range nodes {
		host, port, _ := net.SplitHostPort(addr)
		text += fmt.Sprintf("*3\r\n$%d\r\n%s\r\n:%s\r\n$1\r\nx\r\n", len(host), host, port)
	}
	return text
}

// redirect returns the redirection of a call with the given key, or "".
func (s *server) redirect(key string, asking bool) string {
	slot := transport.HashSlot(key)
	switch {
	case s.lies != "" && s.lied < 1000: // without a pause, fake time does not advance
		s.lied++
		return fmt.Sprintf("-MOVED %d %s\r\n", slot, s.lies)
	case s.w.owner[slot] == "", s.unready == key && s.lied < 1000:
		s.lied++
		return "-CLUSTERDOWN Hash slot not served\r\n"
	case s.w.owner[slot] != s.addr && !asking:
		return fmt.Sprintf("-MOVED %d %s\r\n", slot, s.w.owner[slot])
	case s.asking[key] != "":
		return fmt.Sprintf("-ASK %d %s\r\n", slot, s.asking[key])
	}
	return ""
}

func (s *server) listen(c net.Conn, word, channel string) string {
	kind := "NUMSUB"
	if strings.HasPrefix(word, "s") && word != "subscribe" {
		kind = "SHARDNUMSUB"
		if refusal := s.redirect(channel, false); refusal != "" {
			return refusal
		}
	}
	key := kind + channel
	s.subs[key] = slices.DeleteFunc(s.subs[key], func(other net.Conn) bool { return other == c })
	if strings.HasSuffix(word, "nsubscribe") {
		return push(word, channel)
	}
	s.subs[key] = append(s.subs[key], c)
	return push(word, channel)
}

func push(word, channel string) string {
	return "*3\r\n" + redistest.Bulk(word) + redistest.Bulk(channel) + ":1\r\n"
}

// drop ends the shard subscriptions to a channel on node one and notifies the subscribers.
func (w *world) drop(channel string) {
	w.do(func() {
		for _, c := range w.servers[one].subs["SHARDNUMSUB"+channel] {
			go func() { _, _ = c.Write([]byte(push("sunsubscribe", channel))) }()
		}
		delete(w.servers[one].subs, "SHARDNUMSUB"+channel)
	})
}

// listeners returns the number of subscribers on a node.
func (w *world) listeners(addr, kind, channel string) (n int) {
	w.do(func() { n = len(w.servers[addr].subs[kind+channel]) })
	return n
}

// publish sends a message to the subscribers on a node.
func (w *world) publish(addr, kind, channel, payload string) {
	word := map[string]string{"NUMSUB": "message", "SHARDNUMSUB": "smessage"}[kind]
	var all []net.Conn
	w.do(func() { all = slices.Clone(w.servers[addr].subs[kind+channel]) })
	for _, c := range all {
		_, err := io.WriteString(c, redistest.Array(word, channel, payload))
		assert.NoError(w, err)
	}
}

// await returns the value that came must deliver within a minute.
func await[T any](w *world, came <-chan T) (first T) {
	w.Helper()
	select {
	case first = <-came:
	case <-time.After(time.Minute):
		require.FailNow(w, "nothing came")
	}
	return first
}

func incr(key string) *transport.Call {
	return &transport.Call{Command: "INCR", NumKeys: 1, Args: []any{key}}
}

func (w *world) incr(key string) (any, error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	return mux.Do(ctx, w, incr(key))
}

func (w *world) requireIncr(key string, want int64) {
	w.Helper()
	reply, err := w.incr(key)
	require.NoError(w, err)
	require.Equal(w, want, reply)
}

func (w *world) subscribe(channel string) transport.Subscription {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	sub, err := w.Subscribe(ctx, channel)
	require.NoError(w, err)
	return sub
}

func (w *world) requireEvent(sub transport.Subscription, want transport.Event) {
	w.Helper()
	require.Equal(w, want, await(w, sub.Events()), "%v", sub.Err())
}
