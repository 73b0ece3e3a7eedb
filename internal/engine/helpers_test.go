package engine

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

const (
	testCommand = 3 * time.Second
	testLease   = 30 * time.Second
)

// engineOver returns an engine, which is closed when the test ends, and its log.
func engineOver(t *testing.T, tr transport.Transport) (*Engine, *faketransport.Log) {
	t.Helper()
	log := &faketransport.Log{}
	e := New(Config{
		Transport: tr,
		ClientID:  uuid.New(),
		Lease:     testLease,
		Command:   testCommand,
		PollCap:   10 * time.Second,
		Logger:    slog.New(slog.NewTextHandler(log, nil)),
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e, log
}

// recorder is a resolver that records its calls.
type recorder struct {
	resolves func() *InDoubt // for a call in doubt; nil if there is nothing to do

	mu sync.Mutex // guards noted
	noted
}

// noted records the calls of a resolver.
type noted struct {
	late, inDoubt int // how many times
	reply         any // reply that came late
	err           error
}

func (r *recorder) Late(reply any, err error) *InDoubt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, ErrUncertain) {
		r.late++
		r.reply, r.err = reply, err
		return nil
	}
	r.inDoubt++
	if r.resolves == nil {
		return nil
	}
	return r.resolves()
}

func (r *recorder) seen() noted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.noted
}
