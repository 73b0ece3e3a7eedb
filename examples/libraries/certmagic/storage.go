// Package certmagic lets several processes share certificates, so that each certificate is obtained
// and renewed only once. Copy it into your program.
//
//	certmagic.Default.Storage = certmagic.New(client, certmagic.Default.Storage)
package certmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/caddyserver/certmagic"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// Storage is a certmagic.Storage with Redlatch locks, which are renewed until Unlock. certmagic
// does not notice when a lock is lost. A certificate may then be obtained twice, which counts
// against the authority's rate limit.
type Storage struct {
	certmagic.Storage // stores the data
	client            *redlatch.Client

	mu    sync.Mutex
	holds map[string][]*rlock.Hold // by name, oldest first; there are several if earlier ones were lost
}

var _ certmagic.TryLocker = (*Storage)(nil)

// New returns a Storage that keeps its data in data, which all processes must share.
func New(client *redlatch.Client, data certmagic.Storage) *Storage {
	return &Storage{Storage: data, client: client, holds: map[string][]*rlock.Hold{}}
}

func (s *Storage) lock(name string) *rlock.Lock { return rlock.New(s.client, "certmagic:"+name) }

// Lock waits for a lock until ctx ends.
func (s *Storage) Lock(ctx context.Context, name string) error {
	hold, err := s.lock(name).Lock(ctx)
	if err == nil {
		s.put(name, hold)
	}
	return err
}

// TryLock acquires a lock if it is free.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	hold, err := s.lock(name).TryLock(ctx)
	switch {
	case errors.Is(err, redlatch.ErrNotAcquired):
		return false, nil
	case err != nil:
		return false, err
	}
	s.put(name, hold)
	return true, nil
}

// Unlock releases a lock.
func (s *Storage) Unlock(_ context.Context, name string) error {
	s.mu.Lock()
	holds := s.holds[name]
	if len(holds) > 1 {
		s.holds[name] = holds[1:]
	} else {
		delete(s.holds, name)
	}
	s.mu.Unlock()
	if len(holds) == 0 {
		return fmt.Errorf("%w: certmagic lock %q", redlatch.ErrNotHeld, name)
	}
	return holds[0].Unlock()
}

func (s *Storage) put(name string, hold *rlock.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[name] = append(s.holds[name], hold)
}
