package redlatch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedactHidesThePasswordAndNothingElse(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"redis://localhost:6379/1":          "redis://localhost:6379/1",
		"redis://user:secret@localhost":     "redis://user:xxxxx@localhost",
		"redis://:secret@localhost/2":       "redis://:xxxxx@localhost/2",
		"redis://user@localhost":            "redis://user@localhost",
		"unix://:secret@/run/redis?db=1":    "unix://:xxxxx@/run/redis?db=1",
		"redis://user:secret@host:not-port": "the given address",
		"redis://user:sec%ret@host":         "the given address",
	} {
		require.Equal(t, want, redact(address))
	}
}
