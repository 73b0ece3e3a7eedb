package redisurl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
)

func TestShowSaysWhereAndNotWho(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"redis://localhost:6379/1":          "redis://localhost:6379/1",
		"redis://user:secret@localhost":     "redis://localhost:6379",
		"redis://:secret@localhost/2":       "redis://localhost:6379/2",
		"redis://secret@localhost":          "redis://localhost:6379",
		"unix://:secret@/run/redis?db=1":    "unix:///run/redis",
		"redis://localhost?password=secret": "the given address",
		"redis://user:secret@host:not-port": "the given address",
		"redis://user:sec%ret@host":         "the given address",
		"user:secret@host:6379":             "the given address",
		"redis:user:secret@host":            "the given address",
		"redis//user:secret@host":           "the given address",
		"redis:/user:secret@host":           "the given address",
		"redis:///user:secret@host":         "the given address",
		"redis://host/user:secret@host":     "the given address",
		"http://user:secret@host":           "the given address",
		"redis://user:secret:host:6379":     "the given address",
		"redis://user:12/secret@host":       "the given address",
		"redis://user:12?secret@host":       "the given address",
		"redis://user:12#secret@host":       "the given address",
		"redis://[::1]:6379/1":              "redis://[::1]:6379/1",
		"valkeys://:secret@h":               "valkeys://h:6379",
		"unix:///run/@redis":                "unix:///run/@redis",
		"unix:////:secret@redis":            "the given address",
		"redis://u:secret@h:1/2?x=secret":   "the given address",
		"unix://:secret@x/run/redis":        "the given address",
	} {
		require.Equal(t, want, redisurl.Show(text))
	}
}
