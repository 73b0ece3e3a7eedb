package certmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	latchcertmagic "github.com/redlatch/redlatch/examples/libraries/certmagic"
	"github.com/redlatch/redlatch/examples/libraries/internal/candidates"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.(*RingBufferRateLimiter).loop"),
		goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.(*Cache).maintainAssets"))
}

// authority issues certificates, and counts them and concurrent requests.
type authority struct {
	key          *ecdsa.PrivateKey
	issued, busy atomic.Int32
	together     atomic.Bool
}

func (*authority) IssuerKey() string { return "test" }

func (a *authority) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if a.busy.Add(1) > 1 {
		a.together.Store(true)
	}
	defer a.busy.Add(-1)
	a.issued.Add(1)
	time.Sleep(100 * time.Millisecond) // a real authority takes longer
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(a.issued.Load())), DNSNames: request.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, a.key)
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

func TestProcessesObtainOneCertificate(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{key: key}
	data := &certmagic.FileStorage{Path: t.TempDir()} // shared by all processes
	var processes sync.WaitGroup
	for range 5 {
		storage := latchcertmagic.New(candidates.Connect(t, s.URL()), data)
		processes.Go(func() {
			var config *certmagic.Config
			cache := certmagic.NewCache(certmagic.CacheOptions{GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }})
			defer cache.Stop()
			config = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{a}})
			assert.NoError(t, config.ObtainCertSync(t.Context(), "example.com"))
		})
	}
	processes.Wait()
	require.EqualValues(t, 1, a.issued.Load())
	require.False(t, a.together.Load())
	require.Zero(t, s.Do(t, "DBSIZE"))
}

func TestLocksExclude(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	data := &certmagic.FileStorage{Path: t.TempDir()}
	here, there := latchcertmagic.New(candidates.Connect(t, s.URL()), data), latchcertmagic.New(candidates.Connect(t, s.URL()), data)
	require.NoError(t, here.Lock(t.Context(), "example.com"))
	got, err := there.TryLock(t.Context(), "example.com")
	require.NoError(t, err)
	require.False(t, got)
	require.ErrorIs(t, there.Unlock(t.Context(), "example.com"), redlatch.ErrNotHeld)
	require.NoError(t, here.Unlock(t.Context(), "example.com"))
	got, err = there.TryLock(t.Context(), "example.com")
	require.NoError(t, err)
	require.True(t, got)
	require.NoError(t, there.Unlock(t.Context(), "example.com"))
}

func TestUnlockOfLostLockKeepsNextLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	storage := latchcertmagic.New(candidates.Connect(t, s.URL()), &certmagic.FileStorage{Path: t.TempDir()})
	require.NoError(t, storage.Lock(t.Context(), "example.com"))
	s.Do(t, "DEL", "certmagic:example.com") // as if its lease had expired
	require.NoError(t, storage.Lock(t.Context(), "example.com"))
	require.ErrorIs(t, storage.Unlock(t.Context(), "example.com"), redlatch.ErrLost)
	require.EqualValues(t, 1, s.Do(t, "EXISTS", "certmagic:example.com"), "the lock of the next is free")
	require.NoError(t, storage.Unlock(t.Context(), "example.com"))
	require.ErrorIs(t, storage.Unlock(t.Context(), "example.com"), redlatch.ErrNotHeld)
}
