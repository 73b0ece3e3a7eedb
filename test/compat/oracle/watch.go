package oracle

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/test/monitor"
)

const lineTimeout = 20 * time.Second

// Watch records the commands that clients send to a server. It is not safe for concurrent use.
type Watch struct {
	conn  redis.Conn
	mark  redis.Conn
	marks int
	tape  monitor.Tape
}

// NewWatch runs MONITOR on conn and sends marks on mark. Call it before the watched clients load their scripts.
func NewWatch(conn, mark redis.Conn) (*Watch, error) {
	if _, err := conn.Do("MONITOR"); err != nil {
		return nil, err
	}
	return &Watch{conn: conn, mark: mark}, nil
}

// Since returns the commands that mention name since the last call to Since or Until.
func (w *Watch) Since(name string) ([]monitor.Call, error) {
	w.marks++
	mark := fmt.Sprintf("mark-%d", w.marks)
	if _, err := w.mark.Do("ECHO", mark); err != nil {
		return nil, err
	}
	var calls []monitor.Call
	for {
		call, ok, err := w.next()
		switch {
		case err != nil:
			return calls, err
		case ok && call.Name() == "ECHO" && call.Args[1] == mark:
			return calls, nil
		case ok && mentions(call, name):
			calls = append(calls, call)
		}
	}
}

// Until waits for the next call to a script that mentions name, and returns it.
func (w *Watch) Until(name string) (monitor.Call, error) {
	for {
		call, ok, err := w.next()
		if err != nil || ok && call.Script != "" && mentions(call, name) {
			return call, err
		}
	}
}

func (w *Watch) next() (monitor.Call, bool, error) {
	text, err := redis.String(redis.ReceiveWithTimeout(w.conn, lineTimeout))
	if err != nil {
		return monitor.Call{}, false, fmt.Errorf("oracle: MONITOR: %w", err)
	}
	line, err := monitor.Parse(text)
	if err != nil {
		return monitor.Call{}, false, err
	}
	return w.tape.Add(line)
}

func mentions(call monitor.Call, name string) bool {
	for _, arg := range call.Args[1:] {
		if strings.Contains(arg, name) {
			return true
		}
	}
	return false
}
