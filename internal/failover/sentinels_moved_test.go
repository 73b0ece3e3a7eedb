package failover

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Where Sentinels run in containers, each that is started anew has another address. A
// client that runs for months must find those of today by those of yesterday.
func TestSentinelsThatAreReplacedAgainAndAgainAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := names("10.0.0.1", "6379", "7")
		w, s := newWatch(map[string]func() (any, error){"a:1": answer}, "1000")
		for port := 1000; port < 1100; port++ {
			addr, err := s.Master(t.Context())
			require.NoError(t, err, "replaced %d times", port-1000)
			require.Equal(t, "10.0.0.1:6379", addr)
			w.says = map[string]func() (any, error){fmt.Sprintf("10.0.0.9:%d", port): answer}
			w.knows = []string{fmt.Sprint(port + 1)}
		}
	})
}
