package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
)

func TestServeAnswersUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("one process cannot interrupt another there")
	}
	p := program.Start(t, program.NoServer(t), "serve", "--addr", "127.0.0.1:0")
	c, err := redis.DialURL(p.Line())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	pong, err := redis.String(c.Do("PING"))
	require.NoError(t, err)
	require.Equal(t, "PONG", pong)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	require.Empty(t, p.Rest())
	require.Equal(t, program.CodeInterrupted, p.Code())
	require.Contains(t, p.Stderr.String(), "for development only")
}

func TestServeSaysWhenItsAddressIsTaken(t *testing.T) {
	t.Parallel()
	first := program.Start(t, program.NoServer(t), "serve", "--addr", "127.0.0.1:0")
	addr := first.Line()[len("redis://"):]
	program.Fails(t, program.NoServer(t), 1, "cannot listen on "+addr+": address already in use", "serve", "--addr", addr)
}
