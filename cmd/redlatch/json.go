package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

func printJSON(cmd *cobra.Command, what any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(what)
}
