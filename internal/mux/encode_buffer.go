package mux

import (
	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// encodeBuffer makes the arguments of EVALSHA and EVAL without allocating: it uses one
// slice again and again and boxes each script's digest once.
type encodeBuffer struct {
	args []any
	shas map[*transport.Script]any
}

// shasMax bounds the digests kept, for callers that make scripts on the fly.
const shasMax = 256

func (s *encodeBuffer) send(conn redis.Conn, e entry) error {
	c := e.call
	if c.Script == nil {
		return conn.Send(c.Command, c.Args...)
	}
	command, script := "EVALSHA", s.sha(c.Script)
	if e.eval {
		command, script = "EVAL", c.Script.Text()
	}
	s.args = append(append(s.args[:0], script, c.NumKeys), c.Args...)
	err := conn.Send(command, s.args...)
	clear(s.args) // keep nothing alive
	return err
}

func (s *encodeBuffer) sha(script *transport.Script) any {
	if sha, ok := s.shas[script]; ok {
		return sha
	}
	if s.shas == nil || len(s.shas) >= shasMax {
		s.shas = make(map[*transport.Script]any)
	}
	sha := any(script.SHA())
	s.shas[script] = sha
	return sha
}
