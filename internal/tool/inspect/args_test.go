package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArgsCanBePastedIntoAShell(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"app:job a-b:1":              {"app:job", "a-b:1"},
		"'a b' '$(reboot);'":         {"a b", "$(reboot);"},
		`'it'\''s'`:                  {"it's"},
		"'{app}:x'":                  {"{app}:x"},
		"''":                         {""},
		"'ørder'":                    {"ørder"},
		"-- '-x' a":                  {"-x", "a"},
		"--base64 YQpi YQ==":         {"a\nb", "a"},
		"--base64 G1sySg==":          {"\x1b[2J"},
		"--base64 /w==":              {"\xff"},
		"--base64 AA==":              {"\x00"},
		"--base64 YGA=":              {"``"},
		"71b96ce8-2746-4b0e-9d5f:57": {"71b96ce8-2746-4b0e-9d5f:57"},
	} {
		require.Equal(t, want, Args(args...))
	}
}
