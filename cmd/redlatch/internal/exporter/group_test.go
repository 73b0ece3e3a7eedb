package exporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestALockIsOfTheFirstGroupThatMatches(t *testing.T) {
	t.Parallel()
	g, err := parseGroups([]string{"orders=orders:*", "urgent=*:urgent", "orders=old-orders:*"})
	require.NoError(t, err)
	require.Equal(t, []string{"orders", "urgent", "other"}, g.list())
	for name, want := range map[string]string{
		"orders:1": "orders", "orders:urgent": "orders", "old-orders:1": "orders", "bills:urgent": "urgent", "bills": "other", "": "other",
	} {
		require.Equal(t, want, g.list()[g.of(name)], name)
	}
	require.Equal(t, []string{"all"}, groups{}.list())
	require.Zero(t, groups{}.of("any"))
}

// A look that fails costs no hold its age.
func TestAFailedLookIsForgotten(t *testing.T) {
	t.Parallel()
	s, began := newSeen(), time.Now()
	lock := &inspect.Lock{Name: "job"}
	look := func(after time.Duration, owner string) (age time.Duration, isNew bool) {
		since, isNew, ok := s.hold(lock, owner, began.Add(after))
		require.True(t, ok)
		return began.Add(after).Sub(since), isNew
	}
	_, isNew := look(0, "a:1")
	require.False(t, isNew, "it began at an unknown time")
	s.turn(true)
	s.turn(false) // the connection broke before it was seen
	age, isNew := look(time.Minute, "a:1")
	require.Equal(t, time.Minute, age)
	require.False(t, isNew)
	age, isNew = look(time.Minute, "a:2")
	require.Zero(t, age)
	require.True(t, isNew)
	s.turn(true)
	s.turn(true) // it is free
	age, isNew = look(time.Hour, "a:1")
	require.Zero(t, age)
	require.True(t, isNew)
}

func TestHoldsThatAreTooManyHaveNoAge(t *testing.T) {
	t.Parallel()
	s, lock := newSeen(), &inspect.Lock{Name: "job"}
	for i := range maxHolds {
		s.next[uint64(i)] = time.Time{}
	}
	s.looked = true
	_, isNew, ok := s.hold(lock, "a:1", time.Now())
	require.False(t, ok)
	require.False(t, isNew, "it would be new at each look")
}
