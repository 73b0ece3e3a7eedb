package rlock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// A server whose last save failed refuses what changes something, until it can save again. That
// passes, as other reasons to refuse a call do.
func TestAnUnlockOutlastsAServerThatCannotSave(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := rlock.New(connect(t, s.URL(), redlatch.WithCommandTimeout(soon)), redistest.Key(t))
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)

	at, err := redis.StringMap(s.Do(t, "CONFIG", "GET", "d*"), nil)
	require.NoError(t, err)
	folder := filepath.Join(at["dir"], at["dbfilename"]) // where it would write a file
	require.NoError(t, os.Mkdir(folder, 0o700))
	defer func() { require.NoError(t, os.Remove(folder)) }()
	s.Do(t, "CONFIG", "SET", "save", "3600 1000000")
	s.Do(t, "BGSAVE")
	status := func() string {
		info, _ := s.Do(t, "INFO", "persistence").([]byte)
		return string(info)
	}
	require.Eventually(t, func() bool { return strings.Contains(status(), "rdb_last_bgsave_status:err") }, soon, 10*time.Millisecond)
	time.AfterFunc(time.Second, func() {
		s.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	})
	require.NoError(t, hold.Unlock())
}
