package inspect

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
)

// Waiters leave the queue, and others join it, between the reads of its parts.
func TestPartHasEachWaiterThatStaysOnce(t *testing.T) {
	t.Parallel()
	for _, at := range []Part{{First: 1, Last: 10_000}, {First: 1, Last: 700}, {First: 301, Last: 900}} {
		for _, length := range []int{0, 1, placesAtOnce, placesAtOnce + 1, 1000} {
			var queue []string
			for i := range length {
				queue = append(queue, fmt.Sprint(i))
			}
			begun := slices.Clone(queue[min(at.First-1, length):min(at.Last, length)])
			reads := 0
			read, _, err := at.read(func(first, n int) (part []admin.Waiter, waiting int, err error) {
				for _, owner := range queue[min(first-1, len(queue)):min(first-1+n, len(queue))] {
					part = append(part, admin.Waiter{Text: owner})
				}
				waiting = len(queue)
				if reads++; at.First == 1 {
					queue = queue[min(37, len(queue)):]
				}
				if n := len(queue); n > 20 {
					queue = slices.Delete(queue, n-11, n-7)
				}
				queue = append(queue, fmt.Sprint("new ", reads))
				return part, waiting, nil
			})
			require.NoError(t, err)
			var owners []string
			for _, w := range read {
				owners = append(owners, w.Text)
			}
			require.LessOrEqual(t, reads, 1+(length+placesAtOnce-1)/placesAtOnce)
			for _, owner := range begun {
				if slices.Contains(queue, owner) {
					require.Contains(t, owners, owner, "%v of %d", at, length)
				}
			}
			unique := slices.Compact(slices.Sorted(slices.Values(owners)))
			require.Len(t, owners, len(unique), "%v of %d", at, length)
		}
	}
	failed := errors.New("failed")
	_, _, err := Part{First: 1, Last: 10}.read(func(int, int) ([]admin.Waiter, int, error) { return nil, 0, failed })
	require.ErrorIs(t, err, failed)
}
