package show

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

var wideHeading = []string{"NAME", "KIND", "HOLDER", "CLIENT", "COUNT", "LEASE", "QUEUE", "TOKEN", "LABEL", "NEXT", "DEADLOCK"}

// wideRow writes each cell as one word, so that scripts can split the line.
func wideRow(cells ...string) row {
	for i, cell := range cells {
		cells[i] = cmp.Or(cli.Name(cell), "-")
	}
	return row{name: cells[0], cells: cells}
}

func wideLock(l *listed) row {
	holder, client, count, label, next, deadlock := "", "", "", "", "", ""
	if len(l.Holders) > 0 {
		h := &l.Holders[0]
		holder, client, count, label = h.Owner, h.Kind, string(h.Count), h.Label
		switch {
		case l.More:
			holder += ",..."
		case len(l.Holders) > 1:
			holder += fmt.Sprintf(",+%d", len(l.Holders)-1)
		}
	}
	if l.Next != nil {
		next = l.Next.Owner
	}
	if len(l.Deadlock) > 0 {
		deadlock = "yes"
	}
	return wideRow(l.Name, string(l.Kind), holder, client, count, leaseWord(l.Lease), positive(l.Queue), positive(l.Token), label, next, deadlock)
}

func wideNumber(n inspect.ShownNumber) row {
	holder := fmt.Sprintf("available=%d", n.Available)
	if n.Kind == inspect.Semaphore {
		holder = fmt.Sprintf("taken=%d,available=%d", n.Taken, n.Available)
	}
	waiters := n.PermitWaiters + n.LatchWaiters
	return wideRow(n.Name, string(n.Kind), holder, "", "", leaseWord(inspect.Lease{TTLMillis: n.TTLMillis}), positive(waiters), "", "", "", "")
}

func (s *status) exists() bool { return s.Held || s.length() > 0 }

func (s *status) wide() row {
	l := &listed{View: s.View, Queue: int64(s.length()), Deadlock: s.Deadlock}
	if !s.Held && len(s.Queue) > 0 && s.Queue[0].Position == 1 {
		l.Next = &listedNext{Owned: s.Queue[0].Owned}
	}
	return wideLock(l)
}

func (*counter) exists() bool { return true }

func (s *counter) wide() row { return wideNumber(s.ShownNumber) }

func leaseWord(l inspect.Lease) string {
	switch {
	case l.NoTTL:
		return "none"
	case l.TTLMillis == nil:
		return ""
	}
	return cli.Lease(limits.FromMillis(*l.TTLMillis))
}

func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func printWide(w io.Writer, look cli.Look, headed bool, rows []row) {
	widths := make([]int, len(wideHeading))
	if headed {
		for i, title := range wideHeading {
			widths[i] = len(title)
		}
	}
	for i := range rows {
		for j, cell := range rows[i].cells {
			widths[j] = max(widths[j], sanitize.Width(cell))
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, cell := range cells {
			b.WriteString(sanitize.Pad(cell, widths[i]+2))
		}
		return strings.TrimRight(b.String(), " ")
	}
	if headed {
		fmt.Fprintln(w, look.Paint(cli.Bold, line(wideHeading)))
	}
	for i := range rows {
		fmt.Fprintln(w, line(rows[i].cells))
	}
}
