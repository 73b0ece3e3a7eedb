package goredis

import (
	"context"
	"io"
	"log"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{log.New(io.Discard, "", 0)}) // it tells of every connection that a test breaks
	redistest.Main(m)
}

type quiet struct{ *log.Logger }

func (q quiet) Printf(_ context.Context, format string, v ...any) { q.Logger.Printf(format, v...) }
