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
	p := Start(t, Nobody(t), "serve", "--addr", "127.0.0.1:0")
	c, err := redis.DialURL(p.Line())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	pong, err := redis.String(c.Do("PING"))
	require.NoError(t, err)
	require.Equal(t, "PONG", pong)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	require.Empty(t, p.Rest())
	require.Equal(t, CodeInterrupted, p.Code())
	require.Contains(t, p.Stderr.String(), "for development only")
}

func TestServeSaysWhenItsAddressIsTaken(t *testing.T) {
	t.Parallel()
	first := Start(t, Nobody(t), "serve", "--addr", "127.0.0.1:0")
	addr := first.Line()[len("redis://"):]
	got := Finish(t, Nobody(t), "serve", "--addr", addr)
	require.Equal(t, 1, got.Code)
	OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, "cannot listen on "+addr+": address already in use")
}
