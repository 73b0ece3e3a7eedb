package subcount

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// odd are replies that no server gives to any of the commands of a count.
var odd = []any{
	nil, int64(0), int64(-1), int64(math.MaxInt64), "OK", []byte("\xff"), 1.5, []any{}, []any(nil), []any{nil}, []any{nil, nil, nil},
	[]any{"master"}, []any{"master", int64(0), nil}, []any{"master", int64(0), []any{nil}},
	[]any{"master", int64(0), []any{[]any{}}}, []any{"master", int64(0), []any{[]any{"", "6379"}}},
	[]any{"master", int64(0), []any{[]any{"host", "65536"}}}, []any{"master", int64(0), []any{[]any{"host", "0"}}},
	[]any{"master", int64(0), []any{[]any{"host", "-1"}}}, []any{"master", int64(0), []any{[]any{[]any{}, int64(1)}}},
	[]any{strings.Repeat("m", 1<<20), int64(0), []any{}}, []any{[]any{[]any{[]any{}}}}, []any{"mode"}, []any{"mode", nil, "role"},
	[]any{"mode", "standalone\x00"}, []any{"mode", strings.Repeat("s", 1<<20)}, []any{"somebody", int64(-1)}, []any{"somebody", "1"},
	[]any{"somebody", int64(1), "another", int64(1)}, []any{"somebody", nil}, []any{[]any{}, []any{}},
	&transport.ServerError{}, errors.New(strings.Repeat("E", 1<<10)),
}

func TestRepliesThatMakeNoSenseAreNoCounts(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"HELLO", "ROLE", "PUBSUB"} {
		for i, reply := range odd {
			for _, node := range []string{"master", "replica"} {
				w := newDeployment(t, "1")
				if node == "master" {
					w.master.set(command, reply)
				} else if command != "ROLE" { // which replicas are not asked
					w.replicas[at("1")].set(command, reply)
				} else {
					continue
				}
				counts, err := w.Listeners(t.Context(), "somebody")
				require.Error(t, err, "%s, reply %d to %s", node, i, command)
				require.Nil(t, counts)
				require.Less(t, len(err.Error()), 4096)
				w.Close()
			}
		}
	}
}
