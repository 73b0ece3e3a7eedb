package main

import (
	"context"
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(Env) != "" {
		os.Exit(cli.Execute(context.Background(), os.Args[1:], constructors...))
	}
	redistest.Main(m)
}
