// Package host runs processes on chosen processors and a redis-server, and reads the server's statistics.
package host

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	startTimeout  = 10 * time.Second
	startAttempts = 10
)

// Server is a redis-server on a free loopback port, without persistence. It is for one goroutine.
type Server struct {
	cmd  *exec.Cmd
	dir  string
	addr string
	conn redis.Conn
}

// StartServer starts a server with l on the processors cpus. The program is REDLATCH_SERVER, else
// redis-server, else valkey-server; more are its arguments.
func StartServer(l *Launcher, cpus []int, more ...string) (*Server, error) {
	program, err := serverProgram()
	if err != nil {
		return nil, err
	}
	for range startAttempts {
		var s *Server
		if s, err = launch(l, program, cpus, more); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("start %s: %w", program, err)
}

func serverProgram() (string, error) {
	if named := os.Getenv("REDLATCH_SERVER"); named != "" {
		return exec.LookPath(named)
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no redis-server here; run `make setup`, or set REDLATCH_SERVER to the path of one")
}

func launch(l *Launcher, program string, cpus []int, more []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redlatch-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--maxclients", "20000",
		"--logfile", "server.log",
	}, more...)
	cmd := exec.Command(program, args...) //nolint:gosec // a program of the user's choice
	s := &Server{cmd: cmd, dir: dir, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	if err := l.Start(cmd, cpus); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := s.awaitPong(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("a TCP listener without a TCP address")
	}
	return addr.Port, l.Close()
}

// awaitPong waits until the server answers with the PID of the started process.
func (s *Server) awaitPong() error {
	var err error
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if s.conn, err = redis.Dial("tcp", s.addr); err != nil {
			continue
		}
		var info Info
		if info, err = s.Info(); err == nil && info.pid == s.cmd.Process.Pid {
			return nil
		}
		_ = s.conn.Close()
	}
	return fmt.Errorf("no answer within %v: %w", startTimeout, err)
}

// Addr returns the server's address, host:port.
func (s *Server) Addr() string { return s.addr }

// Do runs one command.
func (s *Server) Do(cmd string, args ...any) (any, error) { return s.conn.Do(cmd, args...) }

// Clear empties the server, including scripts, before each measurement.
func (s *Server) Clear() error {
	for _, cmd := range [][]any{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}} {
		if _, err := s.conn.Do(fmt.Sprint(cmd[0]), cmd[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops the server and removes its folder.
func (s *Server) Stop() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

const slots = 16384

// Cluster is a Redis cluster of masters without replicas on shared processors. It is for one goroutine.
type Cluster struct{ masters []*Server }

// StartCluster starts a cluster of masters with l on the processors cpus.
func StartCluster(l *Launcher, cpus []int, masters int) (*Cluster, error) {
	c := &Cluster{}
	for range masters {
		s, err := StartServer(l, cpus, "--cluster-enabled", "yes")
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.masters = append(c.masters, s)
	}
	err := c.form()
	if err == nil {
		err = c.awaitOK()
	}
	if err != nil {
		c.Stop()
		return nil, fmt.Errorf("form a cluster of %d: %w", masters, err)
	}
	return c, nil
}

// form assigns the slots and introduces the masters.
func (c *Cluster) form() error {
	n := len(c.masters)
	for i, s := range c.masters {
		if _, err := s.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		part := []any{"ADDSLOTS"} // Redis 6.2 has no ADDSLOTSRANGE
		for slot := slots * i / n; slot < slots*(i+1)/n; slot++ {
			part = append(part, slot)
		}
		if _, err := s.Do("CLUSTER", part...); err != nil {
			return err
		}
		for _, other := range c.masters[:i] {
			host, port, _ := strings.Cut(other.addr, ":")
			if _, err := s.Do("CLUSTER", "MEET", host, port); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitOK waits until every master knows the others and serves its slots.
func (c *Cluster) awaitOK() error {
	known := fmt.Sprintf("cluster_known_nodes:%d", len(c.masters))
	deadline := time.Now().Add(startTimeout)
	for _, s := range c.masters {
		for {
			state, err := redis.String(s.Do("CLUSTER", "INFO"))
			if err != nil {
				return err
			}
			if strings.Contains(state, "cluster_state:ok") && strings.Contains(state, known) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s is not ready after %v", s.addr, startTimeout)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// Addr returns the comma-separated addresses of all masters, host:port.
func (c *Cluster) Addr() string {
	var all []string
	for _, s := range c.masters {
		all = append(all, s.addr)
	}
	return strings.Join(all, ",")
}

// Clear empties all masters, including scripts.
func (c *Cluster) Clear() error {
	var errs []error
	for _, s := range c.masters {
		errs = append(errs, s.Clear())
	}
	return errors.Join(errs...)
}

// Info returns the sum of all masters' statistics.
func (c *Cluster) Info() (Info, error) {
	var sum Info
	for _, s := range c.masters {
		info, err := s.Info()
		if err != nil {
			return Info{}, err
		}
		sum = sum.plus(info)
	}
	return sum, nil
}

// plus adds the work of another server.
func (i Info) plus(other Info) Info {
	if i.commands == nil {
		return other
	}
	all := maps.Clone(i.commands)
	for name, more := range other.commands {
		sum := all[name]
		sum.calls += more.calls
		sum.micros += more.micros
		all[name] = sum
	}
	i.commands = all
	i.CPU += other.CPU
	return i
}

// Stop stops all masters and removes their folders.
func (c *Cluster) Stop() {
	for _, s := range c.masters {
		s.Stop()
	}
}
