package unlock

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// leaseText returns what the lease has left, and whether it is renewed.
func leaseText(f *repair.Forced) string {
	switch {
	case f.TTLMillis == nil:
		return "none: it stays until it is released"
	case f.Renewed == inspect.RenewedYes:
		return output.Millis(*f.TTLMillis) + " left, renewed"
	case f.Renewed == inspect.RenewedNo:
		return output.Millis(*f.TTLMillis) + " left, not renewed when it was due"
	}
	return output.Millis(*f.TTLMillis) + " left, fixed or renewed"
}

// describe names the owners that lose the lock, in one line.
func describe(f *repair.Forced) string {
	var all []string
	for i := range f.Holders {
		h := &f.Holders[i]
		all = append(all, fmt.Sprintf("%s (%s, count %s)", sanitize.Word(h.Owner), h.Describe(output.Millis), sanitize.Word(string(h.Count))))
	}
	return strings.Join(all, ", ") + ", lease " + leaseText(f)
}

// print prints the lock and the outcome.
func (o *unlockOptions) print(cmd *cobra.Command, f *repair.Forced) {
	if o.json {
		_ = cli.PrintJSON(cmd, f) // an error is ignored: there is no other output to report it on
		return
	}
	if !o.shown && f.IsLock() { // the fields of a hash that is not a lock may be private
		printLock(cmd.OutOrStdout(), f)
	}
	if f.Taken {
		fmt.Fprint(cmd.OutOrStdout(), output.Indented("taken", f.Heard()))
	}
	if f.Now != nil {
		fmt.Fprint(cmd.OutOrStdout(), output.Indented("now", f.Now.String()))
	}
}

// printLock writes the text output.
func printLock(w io.Writer, f *repair.Forced) {
	if len(f.Holders) == 0 {
		fmt.Fprintf(w, "lock %q is free\n", f.Name)
		return
	}
	state := "is held"
	switch {
	case f.Taken && len(f.Holders) > 1:
		state = "was taken from its holders"
	case f.Taken:
		state = "was taken from its holder"
	}
	fmt.Fprintf(w, "lock %q %s\n", f.Name, state)
	if f.Mode != "" {
		fmt.Fprintf(w, "  kind   %s\n", inspect.ModeText(f.Mode))
	}
	for i := range f.Holders {
		h := &f.Holders[i]
		fmt.Fprint(w, output.WithDetails("  owner  "+sanitize.Word(h.Owner), "count "+sanitize.Word(string(h.Count))))
		fmt.Fprint(w, output.Indented("", h.Describe(output.Millis)))
	}
	fmt.Fprintf(w, "  lease  %s\n", leaseText(f))
	switch {
	case f.QueueLength == nil:
		fmt.Fprintln(w, "  queue  not shown: this user may not read it")
	case *f.QueueLength > 0:
		fmt.Fprintf(w, "  queue  %d waiting\n", *f.QueueLength)
	}
}
