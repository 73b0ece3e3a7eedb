package main

import (
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/runner"
)

// newGuard is the program of a command's guard, see package runner.
func newGuard(*globals) *cobra.Command {
	return &cobra.Command{
		Use:    runner.GuardCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := runner.Guard(); code != 0 {
				return &exitError{code: code}
			}
			return nil
		},
	}
}
