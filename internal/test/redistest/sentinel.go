package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// MasterName is the name of the Sentinels' master.
const MasterName = "mymaster"

const sentinelWait = 60 * time.Second

// Sentinels is a master with two replicas and three Sentinels. Its methods except Failover are safe for concurrent use.
type Sentinels struct {
	servers   []*Server
	sentinels []*Server
}

// StartSentinels starts a master, two replicas and three Sentinels, and waits until each Sentinel knows the other
// Sentinels and the replicas. The options apply to the master and the replicas.
func StartSentinels(tb testing.TB, downAfter time.Duration, opts ...Option) *Sentinels {
	tb.Helper()
	master := Start(tb, opts...)
	set := &Sentinels{servers: []*Server{master}}
	for range 2 {
		set.servers = append(set.servers, StartReplica(tb, master, opts...))
	}
	conf := sentinelConf(master, downAfter)
	for range 3 {
		set.sentinels = append(set.sentinels, Start(tb, WithBinary(master.cfg.binary), func(c *config) { c.sentinel = conf }))
	}
	// A failover would fail without this, because Sentinels look for replicas only every ten seconds.
	for _, s := range set.sentinels {
		awaitTrue(tb, sentinelWait, "each Sentinel knows of all others and of the replicas", func() bool {
			info := s.text(tb, "INFO", "sentinel")
			return strings.Contains(info, "status=ok") && strings.Contains(info, "slaves=2,sentinels=3")
		})
	}
	return set
}

// StartSentinel starts one Sentinel with a quorum of one for the master at addr (host:port).
func StartSentinel(tb testing.TB, addr string, opts ...Option) *Server {
	tb.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	conf := fmt.Sprintf("sentinel monitor %s %s %s 1\n", MasterName, host, port)
	return Start(tb, append([]Option{func(c *config) { c.sentinel = conf }}, opts...)...)
}

func sentinelConf(master *Server, downAfter time.Duration) string {
	lines := []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, master.port),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, downAfter.Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s 5000", MasterName),
		fmt.Sprintf("sentinel parallel-syncs %s 2", MasterName),
	}
	if master.cfg.password != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %s", MasterName, master.cfg.password))
	}
	return strings.Join(lines, "\n") + "\n"
}

// sentinelLine returns the Sentinel's command line. It writes the configuration file only before the first start,
// because the Sentinel updates the file.
func (s *Server) sentinelLine() ([]string, error) {
	path := filepath.Join(s.dir, "sentinel.conf")
	if _, err := os.Stat(path); err != nil {
		if err := os.WriteFile(path, []byte(s.cfg.sentinel), 0o600); err != nil {
			return nil, err
		}
	}
	args := []string{path, "--sentinel", "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--daemonize", "no"}
	return append(args, s.cfg.args...), nil
}

// Addrs returns the addresses of the Sentinels in the form host:port.
func (set *Sentinels) Addrs() []string {
	addrs := make([]string, len(set.sentinels))
	for i, s := range set.sentinels {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Sentinels returns the Sentinels.
func (set *Sentinels) Sentinels() []*Server { return slices.Clone(set.sentinels) }

// Servers returns the master and the replicas. The initial master is the first element.
func (set *Sentinels) Servers() []*Server { return slices.Clone(set.servers) }

// Master returns the master according to most of the Sentinels that reply.
func (set *Sentinels) Master(tb testing.TB) *Server {
	tb.Helper()
	votes, best := map[string]int{}, ""
	for _, s := range set.sentinels {
		at, err := redis.Strings(s.try("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName))
		if err != nil || len(at) != 2 {
			continue
		}
		addr := net.JoinHostPort(at[0], at[1])
		if votes[addr]++; votes[addr] > votes[best] {
			best = addr
		}
	}
	for _, s := range set.servers {
		if s.Addr() == best {
			return s
		}
	}
	tb.Fatalf("redistest: the Sentinels name %q, which is none of theirs", best)
	return nil
}

// Do runs a command on the current master.
func (set *Sentinels) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	return set.Master(tb).Do(tb, cmd, args...)
}

// Failover runs SENTINEL FAILOVER. It does not wait for the failover to finish; use WatchSwitch for that.
func (set *Sentinels) Failover(tb testing.TB) {
	tb.Helper()
	set.sentinels[0].Do(tb, "SENTINEL", "FAILOVER", MasterName)
}

// AwaitMaster waits until most Sentinels no longer report former as the master, and the new master has assumed its
// role.
func (set *Sentinels) AwaitMaster(tb testing.TB, former *Server) *Server {
	tb.Helper()
	var master *Server
	awaitTrue(tb, sentinelWait, "there is another master", func() bool {
		master = set.Master(tb)
		if master == former {
			return false
		}
		_, err := master.try("PING")
		return err == nil && master.role(tb) == "master"
	})
	return master
}

// Switch is a failover. At is the time at which it was first published by a Sentinel.
type Switch struct {
	From, To string
	At       time.Time
}

// WatchSwitch subscribes to +switch-master. The function that it returns waits for the first message.
func (set *Sentinels) WatchSwitch(tb testing.TB) func() Switch {
	tb.Helper()
	heard := make(chan Switch, len(set.sentinels))
	for _, s := range set.sentinels {
		sub := redis.PubSubConn{Conn: s.Dial(tb)}
		if err := sub.Subscribe("+switch-master"); err != nil {
			tb.Fatalf("redistest: listen to a Sentinel: %v", err)
		}
		if got := sub.ReceiveWithTimeout(ioTimeout); fmt.Sprintf("%T", got) != "redis.Subscription" {
			tb.Fatalf("redistest: listen to a Sentinel: %v", got)
		}
		go func() {
			for {
				switch got := sub.Receive().(type) {
				case error:
					return
				case redis.Message:
					if p := strings.Fields(string(got.Data)); len(p) == 5 {
						heard <- Switch{From: net.JoinHostPort(p[1], p[2]), To: net.JoinHostPort(p[3], p[4]), At: time.Now()}
					}
					return
				}
			}
		}()
	}
	return func() Switch {
		tb.Helper()
		select {
		case sw := <-heard:
			return sw
		case <-time.After(sentinelWait):
			tb.Fatalf("redistest: no Sentinel reported another master within %v", sentinelWait)
			return Switch{}
		}
	}
}
