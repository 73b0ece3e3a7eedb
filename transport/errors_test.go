package transport_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/transport"
)

func TestIsCodeFindsCodeInAnyPosition(t *testing.T) {
	t.Parallel()
	const sha = "f_b4a9ab2d8cdc3bb4d0e7a2cf2ca9d0a35bd3ab5b"
	for _, c := range []struct {
		text, code string
		has        bool
	}{
		// A plain command, and a script since Redis 7.
		{"WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE", true},
		{"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT", true},
		{"NOSCRIPT", "NOSCRIPT", true},
		{"WRONGTYPE Operation against a key holding the wrong kind of value script: b4a9, on @user_script:1.", "WRONGTYPE", true},
		{"READONLY You can't write against a read only replica.", "READONLY", true},
		{"ERR unknown command 'WRONG'", "ERR", true},
		// A script before Redis 7.
		{"ERR Error running script (call to " + sha + "): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value ", "WRONGTYPE", true},
		{"ERR Error running script (call to " + sha + "): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'. ", "OOM", true},
		{"ERR Error running script (call to " + sha + "): @user_script:1: -READONLY You can't write against a read only replica. ", "READONLY", true},
		{"ERR Error running script (call to " + sha + "): @user_script:1: -NOPERM this user has no permissions ", "NOPERM", true},
		{"ERR Error running script (call to " + sha + "): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value ", "ERR", true},
		// The in-memory server.
		{"ERR Error compiling script (new function): WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE", true},
		// A different code.
		{"WRONGTYPE Operation against a key holding the wrong kind of value", "ERR", false},
		{"WRONGTYPEX Operation", "WRONGTYPE", false},
		{"NOPERM this user has no permissions to run WRONGTYPE now", "WRONGTYPE", false},
		{"ERR MYWRONGTYPE it is", "WRONGTYPE", false},
		{"ERR the key wrongtype is of no type", "WRONGTYPE", false},
		{"", "ERR", false},
	} {
		err := &transport.ServerError{Text: c.text}
		assert.Equal(t, c.has, transport.IsCode(err, c.code), "%q in %q", c.code, c.text)
		assert.Equal(t, c.has, transport.IsCode(fmt.Errorf("lock: %w", err), c.code), "wrapped: %q in %q", c.code, c.text)
	}
}

func TestOtherErrorsHaveNoCode(t *testing.T) {
	t.Parallel()
	assert.False(t, transport.IsCode(nil, "ERR"))
	assert.False(t, transport.IsCode(errors.New("ERR it looks like one"), "ERR"))
	assert.False(t, transport.IsCode(transport.ErrNotSent, "ERR"))
}

func TestServerErrorQuotesServer(t *testing.T) {
	t.Parallel()
	err := &transport.ServerError{Text: "LOADING Redis is loading the dataset in memory"}
	assert.Equal(t, "redis: LOADING Redis is loading the dataset in memory", err.Error())
	assert.Equal(t, "LOADING", err.Code())
}

func TestShardingNamesMatchRedisson(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "AUTO", transport.ShardingAuto.String())
	assert.Equal(t, "ON", transport.ShardingOn.String())
	assert.Equal(t, "OFF", transport.ShardingOff.String())
	assert.Equal(t, "Sharding(7)", transport.Sharding(7).String())
}
