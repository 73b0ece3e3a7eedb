//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestCommandsExitWithSignalCode(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.RedlatchOwner, time.Hour)
	for _, line := range []string{"watch " + name, "watch " + name + "*", "serve --addr 127.0.0.1:0", "demo"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			for sig, code := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
				var p *program.Process
				if line == "demo" {
					p, _ = program.BusyDemo(t, redistest.Start(t))
				} else {
					p = program.Start(t, s.URL(), strings.Fields(line)...)
					p.Line()
				}
				require.NoError(t, p.Cmd.Process.Signal(sig))
				require.Equal(t, code, p.Outcome(2*program.Soon).Code, "%v", sig)
			}
		})
	}
}

func TestServeRunsUntilInterrupted(t *testing.T) {
	t.Parallel()
	p := program.Start(t, program.NoServer(t), "serve", "--addr", "127.0.0.1:0")
	url := p.Line()
	c, err := redis.DialURL(url)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	pong, err := redis.String(c.Do("PING"))
	require.NoError(t, err)
	require.Equal(t, "PONG", pong)
	addr := url[len("redis://"):]
	program.Fails(t, program.NoServer(t), 1, "cannot listen on "+addr+": address already in use", "serve", "--addr", addr)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	require.Empty(t, p.Rest())
	require.Equal(t, program.CodeInterrupted, p.Code())
	require.Contains(t, p.Stderr.String(), "for development only")
	require.NotContains(t, p.Stderr.String(), "other machines")

	p = program.Start(t, program.NoServer(t), "serve", "--addr", "0.0.0.0:0")
	p.Line()
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	require.Equal(t, program.CodeInterrupted, p.Code())
	require.Contains(t, p.Stderr.String(), "warning: other machines can reach this server, which has no password")
}
