//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// hostile returns replies to any command after the handshake, and the expected error. It is not a
// variable, because each process that tests start would build its megabytes of nesting.
func hostile() map[string]struct{ reply, says string } {
	return map[string]struct{ reply, says string }{
		"a huge string":        {"$99999999999999\r\n", "reply too large: a string of more than "},
		"a huge array":         {"*99999999999999\r\n", "reply too large: a reply of more than "},
		"an endless nesting":   {strings.Repeat("*1\r\n", 1_000_000), "reply too large: arrays of more than "},
		"an endless error":     {"-ERR " + strings.Repeat("\x1b[31m", 200_000), "reply too large: a line of more than "},
		"another type":         {"*3\r\n+a\r\n:1\r\n$-1\r\n", ""},
		"nothing":              {"$-1\r\n", ""},
		"a negative array":     {"*-5\r\n", ""},
		"a push":               {strings.Repeat(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", 1000) + "$-1\r\n", ""},
		"another program's":    {"HTTP/1.1 200 OK\r\n\r\n", "is not Redis"},
		"a redirect to itself": {"-MOVED 1 127.0.0.1:1\r\n", "MOVED"},
		"no connections left":  {"-ERR max number of clients reached\r\n", "max number of clients reached. It has reached its connection limit"},
	}
}

// answering starts a server that completes the handshake and answers other commands with reply.
func answering(t *testing.T, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answer(conn, reply)
		}
	}()
	return "redis://" + l.Addr().String()
}

func answer(conn net.Conn, reply string) {
	defer func() { _ = conn.Close() }()
	for in := bufio.NewReader(conn); ; {
		name, err := command(in)
		if err != nil {
			return
		}
		text := reply
		switch name {
		case "PING":
			text = "+PONG\r\n"
		case "CLIENT":
			text = ":7\r\n"
		}
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

// command reads a command of short lines, and returns its name.
func command(in *bufio.Reader) (name string, err error) {
	var parts, size int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &parts); err != nil {
		return "", err
	}
	for i := range parts {
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return "", err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, text); err != nil {
			return "", err
		}
		if i == 0 {
			name = string(text[:size])
		}
	}
	return name, nil
}

// asksNone reports whether a command does not use a server, uses an embedded one, or needs a terminal.
func asksNone(path string) bool {
	switch path {
	case "demo", "release", "serve", "top":
		return true
	}
	return strings.HasPrefix(path, "completion") || strings.HasPrefix(path, "context")
}

func TestHostileRepliesAreErrors(t *testing.T) {
	t.Parallel()
	paths := slices.Sorted(maps.Keys(commands(t)))
	if !testlevel.IsAll() { // doctor tries everything, for up to eight seconds
		paths = slices.DeleteFunc(paths, func(path string) bool { return path == "doctor" })
	}
	for what, h := range hostile() {
		url := answering(t, h.reply)
		for _, path := range testlevel.Part(slices.DeleteFunc(slices.Clone(paths), asksNone), 3, what) {
			t.Run(path+" and "+what, func(t *testing.T) {
				t.Parallel()
				if path == "exporter" || path == "ui" {
					survives(t, url, path)
					return
				}
				got := program.Finish(t, url, append(strings.Fields(path), usual[path]...)...)
				code := map[string]int{"doctor": 2, "hold": 125, "run": 125}[path]
				assert.Equal(t, max(code, 1), got.Code, got.Stderr)
				assert.NotContains(t, got.Stderr, "goroutine ")
				assert.NotContains(t, got.Stderr, "\x1b")
				says := h.says
				if path == "doctor" { // it goes on
					says, _, _ = strings.Cut(says, ". ")
				}
				assert.Contains(t, program.Words(got.Stdout+got.Stderr), says)
			})
		}
	}
}

// survives checks that a command keeps serving pages after bad replies.
func survives(t *testing.T, url, path string) {
	t.Helper()
	flag := map[string]string{"exporter": "--listen", "ui": "--addr"}[path]
	p := program.Start(t, url, path, flag, "127.0.0.1:0")
	page, err := http.Get(p.Line())
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, page.Body)
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	got := p.Outcome(2 * program.Soon)
	require.Equal(t, 130, got.Code, got.Stderr)
	require.NotContains(t, got.Stderr, "goroutine ")
}
