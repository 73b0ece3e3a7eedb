package status

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestStatusAndListTellTheTokenOfAFencedLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "SET", codec.TokenKey(name), 41)
	got := program.Finish(t, s.URL(), "status", name)
	require.Equal(t, "lock \""+name+"\" is free\n  token  41\n", got.Stdout)

	s.Do(t, "HSET", name, program.SomeOwner, 1)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"kind": "fenced"`)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"token": 41`)
	require.Contains(t, program.Finish(t, s.URL(), "list", "--json", name).Stdout, `"kind":"fenced"`)
	require.Regexp(t, `token +41\n`, program.Finish(t, s.URL(), "list", name).Stdout)

	s.Do(t, "RPUSH", codec.QueueKey(name), program.SomeOwner)
	got = program.Finish(t, s.URL(), "list", "--json", "--kind", "fair-fenced", name)
	require.Contains(t, got.Stdout, `"kind":"fair-fenced"`)
	require.Contains(t, got.Stdout, `"token":41`)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"kind": "fair-fenced"`)

	s.Do(t, "SET", codec.TokenKey(name), "no number")
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"kind": "fair"`)
}
