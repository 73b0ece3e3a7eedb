package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyYesIsYes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, " yes \r\n": true, "\n": false, "": false, "n\n": false, "yeah\n": false} {
		var out strings.Builder
		require.Equal(t, want, Confirm(strings.NewReader(answer), &out, "Take it?"), answer)
		require.Equal(t, "Take it? [y/N] ", out.String())
	}
}
