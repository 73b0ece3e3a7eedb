package redistest

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // servers identify scripts by it
	"encoding/hex"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits selects the restrictions that a server has in comparison with Redis.
type Limits struct {
	// Keyless rejects scripts without keys.
	Keyless bool
	// Undeclared rejects scripts that use undeclared keys.
	Undeclared bool
	// Flagged is like Undeclared, but accepts scripts that have Dragonfly's flag for undeclared keys.
	Flagged bool
	// Publish rejects PUBLISH and SPUBLISH in scripts.
	Publish bool
}

// Prefixes for scripts. StrictKeys makes a script fail if it uses an undeclared key.
const (
	StrictKeys = `local redis = (function(server)
    local declared = {}
    for i = 1, #KEYS do
        declared[KEYS[i]] = true
    end
    local function check(...)
        local args = {...}
        local name, last = string.upper(args[1]), 2
        if name == 'PUBLISH' or name == 'SPUBLISH' or name == 'PUBSUB' then
            last = 1
        elseif name == 'DEL' or name == 'EXISTS' then
            last = #args
        elseif name == 'ZUNIONSTORE' then
            last = 3 + args[3]
            args[3] = args[2]
        end
        for i = 2, last do
            if not declared[args[i]] then
                error('script tried accessing undeclared key', 0)
            end
        end
    end
    return {
        call = function(...) check(...) return server.call(...) end,
        pcall = function(...) check(...) return server.pcall(...) end,
    }
end)(redis)
`
	noPublish = `local redis = (function(server)
    return {pcall = server.pcall, call = function(name, ...)
        if string.upper(name) == 'PUBLISH' or string.upper(name) == 'SPUBLISH' then
            error('PUBLISH is disabled', 0)
        end
        return server.call(name, ...)
    end}
end)(redis)
`
	dragonflyFlag = "--!df flags=allow-undeclared-keys\n"
	keyless       = "return redis.error_reply('ERR Lua scripts without any input keys are not supported')"
)

type limited struct {
	limits Limits
	server string
	mu     sync.Mutex
	texts  map[string]string // digest -> text; guarded by mu
}

// StartLimited starts a server on which scripts are subject to the given limits, and returns its URL.
func StartLimited(tb testing.TB, limits Limits) string {
	tb.Helper()
	l := &limited{limits: limits, server: Start(tb).Addr(), texts: map[string]string{}}
	listener, err := net.Listen("tcp", loopback(0)) //nolint:noctx // it does not wait
	require.NoError(tb, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { l.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return redisURL(listener.Addr().String(), "")
}

func (l *limited) serve(client net.Conn) {
	server, err := net.Dial("tcp", l.server) //nolint:noctx // it is on this machine
	if err != nil {
		_ = client.Close()
		return
	}
	var replies sync.WaitGroup
	replies.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	l.forward(client, server)
	_ = server.Close()
	replies.Wait()
}

func (l *limited) forward(from io.Reader, to io.Writer) {
	for in := bufio.NewReader(from); ; {
		args, err := ReadCommand(in)
		if err != nil {
			return
		}
		if _, err := io.WriteString(to, Array(l.rewrite(args)...)); err != nil {
			return
		}
	}
}

func (l *limited) rewrite(args []string) []string {
	if len(args) < 3 {
		return args
	}
	name := strings.ToUpper(args[0])
	if name != "EVAL" && name != "EVALSHA" {
		return args
	}
	if l.limits.Keyless && args[2] == "0" {
		return []string{"EVAL", keyless, "0"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	text, known := l.texts[args[1]]
	switch {
	case name == "EVAL":
		text = args[1]
		digest := sha1.Sum([]byte(text)) //nolint:gosec // as above
		l.texts[hex.EncodeToString(digest[:])] = text
	case !known:
		return args
	}
	if l.limits.Undeclared || l.limits.Flagged && !strings.HasPrefix(text, dragonflyFlag) {
		text = StrictKeys + text
	}
	if l.limits.Publish {
		text = noPublish + text
	}
	return append([]string{"EVAL", text}, args[2:]...)
}
