package inspect

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
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
