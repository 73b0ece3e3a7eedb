package main

import (
	"testing"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/all"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/test/program"
)

var constructors = all.Commands(nil)

func TestMain(m *testing.M) { program.Main(m, cli.Execute, constructors...) }
