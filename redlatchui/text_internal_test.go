package redlatchui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentenceStartsWithCapital(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nothing was done": "Nothing was done.", "nothing was done.": "Nothing was done.", "élan": "Élan.", "\xffx": "�x.", "\"a\" b": "\"a\" b.",
	} {
		require.Equal(t, want, fullSentence(text))
	}
}
