package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// The most that a request may have. Redis has larger limits.
const (
	maxArgs    = 1 << 20
	maxRequest = 64 << 20 // bytes
	keepBuffer = 64 << 10 // bytes of a buffer that are kept for the next request
)

// errRequest reports bytes that are not a request within the limits.
var errRequest = errors.New("embedded: not a request, or too large")

// requests reads requests as Redis clients send them: non-empty arrays of strings. It passes on only
// complete requests. Miniredis allocates as much memory as a length names, and panics on an empty
// array.
type requests struct {
	from  *bufio.Reader
	ready bytes.Buffer
}

func (r *requests) Read(p []byte) (int, error) {
	if r.ready.Len() == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	return r.ready.Read(p)
}

// next reads one request.
func (r *requests) next() error {
	if r.ready.Reset(); r.ready.Cap() > keepBuffer {
		r.ready = bytes.Buffer{}
	}
	args, err := r.length('*', maxArgs)
	switch {
	case err != nil:
		return err
	case args == 0:
		return errRequest
	}
	for range args {
		size, err := r.length('$', maxRequest-r.ready.Len())
		if err != nil {
			return err
		}
		if _, err := io.CopyN(&r.ready, r.from, int64(size+len("\r\n"))); err != nil {
			return err
		}
	}
	return nil
}

// length reads a line with kind and a number, which is limited to most.
func (r *requests) length(kind byte, most int) (int, error) {
	line, err := r.from.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	digits, ended := bytes.CutSuffix(line, []byte("\r\n"))
	digits, begun := bytes.CutPrefix(digits, []byte{kind})
	n, err := strconv.ParseUint(string(digits), 10, 31)
	if !begun || !ended || err != nil || int(n) > most {
		return 0, errRequest
	}
	r.ready.Write(line)
	return int(n), nil
}

// guarded runs before each command, and runs it, so that a panic of miniredis ends the connection
// and not the process. It is called again for the commands that it runs.
func (s *Server) guarded(p *server.Peer, cmd string, args ...string) (answered bool) {
	if _, again := s.running.LoadOrStore(p, true); again {
		return s.before(p)
	}
	defer s.running.Delete(p)
	defer func() {
		if v := recover(); v != nil {
			s.unlock(v)
			p.WriteError(fmt.Sprintf("ERR miniredis cannot run %s: %v", cmd, v))
			p.Close()
		}
	}()
	answered = true
	s.srv.Dispatch(p, append([]string{cmd}, args...))
	return answered
}

// unlock releases miniredis's mutex, where the command that panicked with v has left it locked. A
// command of a script panics again: the script reports it.
func (s *Server) unlock(v any) {
	switch stack := string(debug.Stack()); {
	case strings.Count(stack, "(*Server).guarded(") > 1:
		panic(v)
	case strings.Contains(stack, "miniredis/v2.withTx("):
		s.mini.Unlock()
	}
}

// before runs before each command, and reports whether it has answered it: with the error that
// FailWith has set.
func (s *Server) before(p *server.Peer) (answered bool) {
	if text := s.failing.Load(); text != nil && *text != "" {
		p.WriteError(*text)
		return true
	}
	return false
}
