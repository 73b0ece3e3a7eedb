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

func TestJSONTellsFreeFromNoTTLAndKeepsEachByteOfAName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what any
		want string
	}{
		{NameOf("orders:42"), `{"name":"orders:42"}`},
		{NameOf("日本語"), `{"name":"日本語"}`},
		{NameOf("\xff\xfe"), `{"name":"\ufffd\ufffd","name_base64":"//4="}`},
		{LeaseOf(false, 0), `{"ttl_ms":null}`},
		{LeaseOf(true, redlatch.NoTTL), `{"ttl_ms":null,"no_ttl":true}`},
		{LeaseOf(true, 1500*time.Millisecond), `{"ttl_ms":1500}`},
		{LeaseOf(true, 0), `{"ttl_ms":0}`},
	} {
		text, err := json.Marshal(c.what)
		require.NoError(t, err)
		require.Equal(t, c.want, string(text))
	}
}

// The line that has it begins with the program's name already.
func TestWhyListenersAreNotCountedNamesTheProgramNowhere(t *testing.T) {
	t.Parallel()
	err := &redlatch.LockError{Op: "listeners", Name: "job", Err: fmt.Errorf("%w: redlatch: subscribers on the master cannot be counted: ROLE", admin.ErrNotCounted)}
	require.Equal(t, "subscribers on the master cannot be counted: ROLE", NotCounted(err))
}
