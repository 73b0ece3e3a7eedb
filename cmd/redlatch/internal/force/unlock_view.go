package force

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

func leaseText(f *repair.Forced) string {
	switch {
	case f.TTLMillis == nil:
		return "none: held until released"
	case f.Mode == protocol.ModeRead:
		return cli.Millis(*f.TTLMillis) + " left"
	case f.Renewed == inspect.RenewedYes:
		return cli.Millis(*f.TTLMillis) + " left, renewed"
	case f.Renewed == inspect.RenewedNo:
		return cli.Millis(*f.TTLMillis) + " left, not renewed when it was due"
	}
	return cli.Millis(*f.TTLMillis) + " left, fixed or renewed"
}

func describe(f *repair.Forced) string {
	var all []string
	losers := f.Losers()
	for _, h := range losers {
		if f.IsSemaphore() {
			all = append(all, fmt.Sprintf("%s (%s)", sanitize.Word(h.Owner), h.Describe(cli.Millis)))
			continue
		}
		all = append(all, fmt.Sprintf("%s (%s, count %s)", sanitize.Word(h.Owner), h.Describe(cli.Millis), sanitize.Word(string(h.Count))))
	}
	said := strings.Join(all, ", ")
	if !f.IsSemaphore() {
		said += ", lease " + leaseText(f)
	}
	switch others, _ := f.Others(); {
	case others == 1:
		said += ", 1 other keeps it"
	case others > 1:
		said += fmt.Sprintf(", %d others keep it", others)
	}
	return said
}

func question(f *repair.Forced) string {
	others, _ := f.Others()
	this, holder := "this", "holder"
	if len(f.Losers()) > 1 {
		this, holder = "these", "holders"
	}
	switch {
	case f.IsSemaphore():
		return fmt.Sprintf("Release %s %s?", this, subject(f))
	case others > 0:
		return fmt.Sprintf("Release lock %q of %s %s, and keep it for the others?", f.Name, this, holder)
	}
	return fmt.Sprintf("Release lock %q of %s %s?", f.Name, this, holder)
}

func subject(f *repair.Forced) string {
	switch {
	case !f.IsSemaphore():
		return fmt.Sprintf("lock %q", f.Name)
	case len(f.Losers()) == 1:
		return fmt.Sprintf("permit of semaphore %q", f.Name)
	}
	return fmt.Sprintf("permits of semaphore %q", f.Name)
}

func (o *unlockOptions) print(cmd *cobra.Command, f *repair.Forced) {
	_ = o.format.Print(cmd, f, func(w io.Writer) { // cli.Execute reports the error
		if !o.shown && f.IsLock() { // the fields of a hash that is not a lock may be private
			printLock(w, f)
		}
		if f.Notified != "" {
			fmt.Fprint(w, cli.Indented("taken", f.Heard()))
		}
		if f.Now != nil {
			fmt.Fprint(w, cli.Indented("now", f.Now.String()))
		}
	})
}

func printLock(w io.Writer, f *repair.Forced) {
	if len(f.Holders) == 0 {
		if !f.IsSemaphore() { // otherwise, the error is printed
			fmt.Fprintf(w, "lock %q is free\n", f.Name)
		}
		return
	}
	losers := f.Losers()
	fmt.Fprintf(w, "%s %s\n", subject(f), state(f, len(losers)))
	if f.Mode != "" {
		fmt.Fprintf(w, "  kind   %s\n", inspect.ModeText(f.Mode))
	}
	for _, h := range losers {
		if f.IsSemaphore() {
			fmt.Fprint(w, cli.WithDetails("  permit "+sanitize.Word(h.Owner), strings.TrimPrefix(h.Describe(cli.Millis), "permit, ")))
			continue
		}
		fmt.Fprint(w, cli.WithDetails("  owner  "+sanitize.Word(h.Owner), "count "+sanitize.Word(string(h.Count))))
		fmt.Fprint(w, cli.Indented("", h.Describe(cli.Millis)))
	}
	if others, over := f.Others(); over > 0 {
		fmt.Fprintf(w, "  others %d, and %d with expired leases\n", others, over)
	} else if others > 0 {
		fmt.Fprintf(w, "  others %d\n", others)
	}
	if f.IsSemaphore() {
		return
	}
	fmt.Fprintf(w, "  lease  %s\n", leaseText(f))
	switch {
	case f.QueueLength == nil:
		fmt.Fprint(w, cli.Indented("queue", "not shown: "+sanitize.Line(f.QueueError)))
	case *f.QueueLength > 0:
		fmt.Fprintf(w, "  queue  %d waiting\n", *f.QueueLength)
	}
}

func state(f *repair.Forced, losers int) string {
	if f.IsSemaphore() {
		is, was := "is", "was"
		if losers > 1 {
			is, was = "are", "were"
		}
		if f.Taken {
			return was + " released"
		}
		return is + " taken"
	}
	others, _ := f.Others()
	switch {
	case !f.Taken:
		return "is held"
	case others > 0:
		return fmt.Sprintf("was released for %d of its %d holders", losers, losers+others)
	case losers > 1:
		return "was released for its holders"
	}
	return "was released for its holder"
}
