package redlatch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedactShowsWhereAndNotWho(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"redis://localhost:6379/1":          "redis://localhost:6379/1",
		"redis://user:secret@localhost":     "redis://localhost",
		"redis://:secret@localhost/2":       "redis://localhost/2",
		"redis://secret@localhost":          "redis://localhost",
		"unix://:secret@/run/redis?db=1":    "unix:///run/redis",
		"redis://localhost?password=secret": "redis://localhost",
		"redis://user:secret@host:not-port": "the given address",
		"redis://user:sec%ret@host":         "the given address",
		"user:secret@host:6379":             "the given address",
		"redis:user:secret@host":            "the given address",
	} {
		require.Equal(t, want, redact(address))
	}
}
