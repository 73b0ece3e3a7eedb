package host

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// slots is how many a cluster has.
const slots = 16384

// Cluster is a Redis cluster of masters without replicas, each a [Server], which share the
// processors that they were started on. It is for one goroutine.
type Cluster struct{ masters []*Server }

// StartCluster starts a cluster with l on these processors, of as many masters.
func StartCluster(l *Launcher, cpus []int, masters int) (*Cluster, error) {
	c := &Cluster{}
	for range masters {
		s, err := startServer(l, cpus, "--cluster-enabled", "yes")
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.masters = append(c.masters, s)
	}
	err := c.form()
	if err == nil {
		err = c.await("every master serves its slots", func(s *Server) (bool, error) {
			state, err := redis.String(s.Do("CLUSTER", "INFO"))
			return strings.Contains(state, "cluster_state:ok") &&
				strings.Contains(state, fmt.Sprintf("cluster_known_nodes:%d", masters)), err
		})
	}
	if err != nil {
		c.Stop()
		return nil, fmt.Errorf("form a cluster of %d: %w", masters, err)
	}
	return c, nil
}

// form gives each master its part of the slots and makes it known to the others.
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

// await waits until something is so on every master.
func (c *Cluster) await(what string, is func(s *Server) (bool, error)) error {
	deadline := time.Now().Add(startTimeout)
	for _, s := range c.masters {
		for {
			ok, err := is(s)
			if err != nil {
				return err
			}
			if ok {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("not within %v: %s", startTimeout, what)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// Addr returns the addresses of all masters, host:port, with commas between them.
func (c *Cluster) Addr() string {
	var all []string
	for _, s := range c.masters {
		all = append(all, s.addr)
	}
	return strings.Join(all, ",")
}

// Clear empties all masters, scripts included.
func (c *Cluster) Clear() error {
	var errs []error
	for _, s := range c.masters {
		errs = append(errs, s.Clear())
	}
	return errors.Join(errs...)
}

// Info is what all masters say of their work, added up.
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

// plus adds the work of another server; the rest is that of the first.
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
	i.Clients += other.Clients
	return i
}

// Stop ends all masters and removes their folders.
func (c *Cluster) Stop() {
	for _, s := range c.masters {
		s.Stop()
	}
}
