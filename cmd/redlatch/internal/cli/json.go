package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

// PrintJSON prints the JSON output of a command.
func PrintJSON(cmd *cobra.Command, what any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // lines to be copied have & in them
	return enc.Encode(what)
}
