package run

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
)

// completeRun offers what may stand after the flags of run: a name, the dashes, and
// then the command and its arguments, as the shell has them.
func completeRun(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	// Cobra parses the command line with dashes added, and does not report afterwards
	// whether there were any.
	dashes := slices.Contains(os.Args, "--")
	switch {
	case dashes:
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) == 1:
		return []cobra.Completion{"--"}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
