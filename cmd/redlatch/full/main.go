// Command full is the redlatch of releases: the commands of cmd/redlatch, and the terminal view of
// redlatch top.
package main

import (
	"context"
	"os"

	"github.com/redlatch/redlatch/cmd/redlatch/full/internal/screen"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/all"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

func main() {
	os.Exit(cli.Execute(context.Background(), os.Args[1:], all.Commands(screen.Show)...))
}
