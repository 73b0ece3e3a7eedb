package program

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// OK runs redlatch, which must succeed, and returns its standard output.
func OK(t *testing.T, url string, args ...string) string {
	t.Helper()
	got := Finish(t, url, args...)
	require.Equal(t, 0, got.Code, "%q: %s", args, got.Stderr)
	return got.Stdout
}

// Fails runs redlatch, which must exit with code and print one line that contains says, and no password.
func Fails(t *testing.T, url string, code int, says string, args ...string) Outcome {
	t.Helper()
	got := Finish(t, url, args...)
	require.Equal(t, code, got.Code, "%q: %s", args, got.Stderr)
	OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, says, "%q", args)
	require.NotContains(t, got.Stderr, "sesame", "%q", args)
	return got
}
