package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestServeAnswersUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("one process cannot interrupt another there")
	}
	p := start(t, nobody(t), "serve", "--addr", "127.0.0.1:0")
	c, err := redis.DialURL(p.line())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	pong, err := redis.String(c.Do("PING"))
	require.NoError(t, err)
	require.Equal(t, "PONG", pong)
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	require.Empty(t, p.rest())
	require.Equal(t, codeInterrupted, p.code())
	require.Contains(t, p.stderr.String(), "for development only")
}

func TestServeSaysWhenItsAddressIsTaken(t *testing.T) {
	t.Parallel()
	first := start(t, nobody(t), "serve", "--addr", "127.0.0.1:0")
	addr := first.line()[len("redis://"):]
	got := finish(t, nobody(t), "serve", "--addr", addr)
	require.Equal(t, 1, got.code)
	oneLine(t, got.stderr)
	require.Contains(t, got.stderr, "cannot listen on "+addr+": address already in use")
}
