// Package all lists the commands of redlatch.
package all

import (
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/exporter"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/force"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/hold"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/show"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/top"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/ui"
)

// Commands returns all commands. screen shows redlatch top; it is nil if the program has no
// terminal view.
func Commands(screen top.Screen) []cli.Constructor {
	return []cli.Constructor{
		demo.New, demo.NewWorker,
		show.NewDoctor, show.NewList, show.NewStatus, show.NewWatch,
		force.NewEvict, force.NewUnlock,
		exporter.New,
		hold.New, hold.NewDetached, hold.NewRelease, hold.NewRun, hold.NewGuard,
		newContext, newManual,
		newServe,
		top.New(screen),
		ui.New,
	}
}
