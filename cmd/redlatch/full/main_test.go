package main

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/full/internal/screen"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/all"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, cli.Execute, all.Commands(screen.Show)...) }
