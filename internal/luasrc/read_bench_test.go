package luasrc

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// BenchmarkReaders has readers come and go at random in one lock, on a real server, as many
// requests at once as there are readers, up to 64. It reports what a pair of read acquire and
// read release costs the server: its processor's time in all, what it spends in scripts, what
// of that in their commands, and how many of these there are.
func BenchmarkReaders(b *testing.B) {
	for _, readers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			server := redistest.Start(b)
			server.Do(b, "SCRIPT", "LOAD", ReadAcquire.Text())
			server.Do(b, "SCRIPT", "LOAD", ReadRelease.Text())
			c := &crowd{b: b, conn: server.Dial(b), depth: min(readers, 64)}
			for n := range readers {
				c.outside = append(c.outside, n)
			}
			for range readers - 1 {
				c.enter()
			}
			c.settle()
			server.Do(b, "CONFIG", "RESETSTAT")
			before := c.processor()
			for b.Loop() {
				c.enter()
				c.leave()
			}
			c.settle()
			c.report(c.processor() - before)
		})
	}
}

// crowd are readers of one lock, by their numbers.
type crowd struct {
	b               *testing.B
	conn            redis.Conn
	inside, outside []int
	depth, pending  int
}

// send sends the call of a script, and waits for replies when so many are awaited.
func (c *crowd) send(v vector) {
	args := []any{v.script.SHA(), len(v.keys)}
	for _, key := range v.keys {
		args = append(args, key)
	}
	require.NoError(c.b, c.conn.Send("EVALSHA", append(args, v.args...)...))
	if c.pending++; c.pending >= c.depth {
		c.settle()
	}
}

func (c *crowd) settle() {
	_, err := c.conn.Do("")
	require.NoError(c.b, err)
	c.pending = 0
}

func (c *crowd) enter() {
	n := c.outside[0]
	c.outside, c.inside = c.outside[1:], append(c.inside, n)
	c.send(read("lock", readerOf(n), readerLease))
}

func (c *crowd) leave() {
	i := rand.IntN(len(c.inside))
	n := c.inside[i]
	c.inside, c.outside = append(c.inside[:i], c.inside[i+1:]...), append(c.outside, n)
	c.send(unread("lock", readerOf(n), 0, readerLease))
}

// info are the values of a section of INFO that match.
func (c *crowd) info(section, pattern string) [][]string {
	text, err := redis.String(c.conn.Do("INFO", section))
	require.NoError(c.b, err)
	return regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
}

func (c *crowd) number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(c.b, err)
	return n
}

// processor is the processor's time that the server has used, in microseconds.
func (c *crowd) processor() (all float64) {
	for _, m := range c.info("cpu", `used_cpu_(?:sys|user):(\S+)`) {
		all += 1e6 * c.number(m[1])
	}
	return all
}

// report reports what pairs cost, given the processor's time of all.
func (c *crowd) report(processor float64) {
	pairs := float64(c.b.N)
	var scripts, commands, calls float64
	for _, m := range c.info("commandstats", `cmdstat_([^:]+):calls=(\d+),usec=(\d+)`) {
		switch name := m[1]; {
		case name == "evalsha":
			scripts = c.number(m[3])
		case name != "info" && name != "config|resetstat":
			calls, commands = calls+c.number(m[2]), commands+c.number(m[3])
		}
	}
	c.b.ReportMetric(processor/pairs, "µs/pair")
	c.b.ReportMetric(scripts/pairs, "script-µs/pair")
	c.b.ReportMetric(commands/pairs, "command-µs/pair")
	c.b.ReportMetric(calls/pairs, "commands/pair")
	c.b.ReportMetric(0, "ns/op")
}
