package inspect

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

func TestArgsAreShellQuoted(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"app:job a-b:1":              {"app:job", "a-b:1"},
		"'a b' '$(reboot);'":         {"a b", "$(reboot);"},
		`'it'\''s'`:                  {"it's"},
		"'{app}:x'":                  {"{app}:x"},
		"''":                         {""},
		"'ørder'":                    {"ørder"},
		"a=b '=b'":                   {"a=b", "=b"},
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

func TestJSONDistinguishesFreeFromNoTTL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what any
		want string
	}{
		{NameOf("orders:42"), `{"name":"orders:42"}`},
		{NameOf("日本語"), `{"name":"日本語"}`},
		{NameOf("\xff\xfe"), `{"name":"\ufffd\ufffd","name_base64":"//4="}`},
	} {
		text, err := json.Marshal(c.what)
		require.NoError(t, err)
		require.Equal(t, c.want, string(text))
	}
	for left, want := range map[time.Duration]string{
		redlatch.NoTTL: `{"ttl_ms":null,"no_ttl":true}`, 1500 * time.Millisecond: `{"ttl_ms":1500}`, 0: `{"ttl_ms":0}`,
	} {
		for held, want := range map[bool]string{true: want, false: `{"ttl_ms":null}`} {
			text, err := json.Marshal(LeaseOf(held, left))
			require.NoError(t, err)
			require.Equal(t, want, string(text))
		}
	}
}

func TestUncountedReasonOmitsProgramName(t *testing.T) {
	t.Parallel()
	err := &redlatch.LockError{Op: "listeners", Name: "job", Err: fmt.Errorf("%w: redlatch: cannot count subscribers on the master: ROLE", admin.ErrNotCounted)}
	require.Equal(t, "cannot count subscribers on the master: ROLE", NotCounted(err))
}
