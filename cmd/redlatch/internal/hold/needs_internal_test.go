package hold

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/acl"
)

func TestMissingRightsAreToldInOneOrder(t *testing.T) {
	t.Parallel()
	o := lockFlags{fair: true, fenced: true, write: true, permits: "crawl:5", atLeast: 1}
	for range 20 {
		require.Equal(t, []string{acl.Plain, acl.Fair, acl.Tokens, acl.Semaphores, acl.ReadWrite, acl.Owners}, o.needs())
	}
}
