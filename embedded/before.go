package embedded

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

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
