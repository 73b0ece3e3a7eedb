package run

import (
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/run/runner"
	"github.com/redlatch/redlatch/internal/tool/cli"
)

// NewGuard is the program of a command's guard, see package runner.
func NewGuard(*cli.Globals) *cobra.Command {
	return &cobra.Command{
		Use:    runner.GuardCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := runner.Guard(); code != 0 {
				return &cli.ExitError{Code: code}
			}
			return nil
		},
	}
}
