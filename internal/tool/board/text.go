package board

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// ShownName is the number of bytes of a name or label to show.
const ShownName = 160

// NameText returns a name as text. It escapes special characters, and cuts out the middle of a long name.
func NameText(name string) string {
	if len(name) <= ShownName {
		return sanitize.Word(name)
	}
	head, tail := name[:ShownName/2], name[len(name)-ShownName/4:]
	for !utf8.ValidString(head) && len(head) > ShownName/2-utf8.UTFMax && utf8.ValidString(name[:len(head)-1]) {
		head = head[:len(head)-1]
	}
	return fmt.Sprintf("%s … %s (%d bytes)", sanitize.Word(head), sanitize.Word(tail), len(name))
}

// LabelText returns the beginning of a label.
func LabelText(label string) string {
	if len(label) > ShownName {
		label = label[:ShownName] + "…"
	}
	return sanitize.Line(label)
}

// OwnerText returns the label of an owner, if any, and its short form.
func OwnerText(owner, label string) string {
	if label != "" {
		return LabelText(label) + " (" + inspect.ShortOwner(owner) + ")"
	}
	return inspect.ShortOwner(owner)
}

// Span returns a duration in one or two units.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d", int(d.Hours())/24)
}

// QueueText describes how many callers are waiting.
func QueueText(e Entry) string {
	n := e.Waiters()
	switch {
	case e.Queue > 0:
		return strconv.FormatInt(n, 10)
	case e.Uncounted:
		return "not known"
	case n > 0:
		return fmt.Sprintf("%d listening", n)
	}
	return ""
}

// NumberText returns the state of a semaphore, latch or counter.
func NumberText(kind inspect.Kind, n *inspect.Number) string {
	switch kind {
	case inspect.Semaphore:
		return fmt.Sprintf("%d taken, %d free", n.Taken, n.Available)
	case inspect.Latch:
		return fmt.Sprintf("%d to count down", n.Available)
	}
	return fmt.Sprintf("number %d", n.Available)
}

// KindText returns a kind and, for a read/write lock, its mode.
func KindText(kind inspect.Kind, mode string) string {
	switch {
	case kind == inspect.ReadWrite && mode != "":
		return "read/write, " + mode
	case kind == inspect.ReadWrite:
		return "read/write"
	}
	return string(kind)
}

// AgeText describes how long a lock had been held at the given time.
func AgeText(a Age, at time.Time) string {
	if a.Exact {
		return "since " + a.Since.UTC().Format(time.TimeOnly) + " UTC, for " + Span(at.Sub(a.Since))
	}
	return "for at least " + Span(at.Sub(a.Since))
}

// LeaseText describes the remaining lease at the given time, and whether it is being renewed.
func (l *Lock) LeaseText(at time.Time) string {
	if l.TTL < 0 {
		return "none: held until released"
	}
	said := Span(l.TTL-at.Sub(l.At)) + " left"
	switch l.Renewed {
	case inspect.RenewedYes:
		said += ", renewed"
	case inspect.RenewedNo:
		said += ", not renewed when due: fixed, or the client is gone"
	case inspect.RenewedUnknown:
		said += ", fixed or renewed: not known yet"
	}
	return said
}

// RoleOf returns the role of a reader or writer, or the lease of a permit.
func RoleOf(h inspect.Holder) string {
	switch {
	case h.Mode == "permit":
		return strings.TrimPrefix(h.Describe(func(ms int64) string { return Span(limits.FromMillis(ms)) }), "permit, ")
	case h.Mode == "write":
		return "writes"
	case h.IsOver():
		return "reads, its lease has expired"
	case h.Mode == "read":
		return "reads"
	}
	return ""
}

// DeadlineText returns the time until a waiter's deadline.
func DeadlineText(q Waiter, at time.Time) string {
	switch {
	case q.Deadline.IsZero():
		return "none"
	case !q.Deadline.After(at):
		return "over"
	}
	return "in " + Span(q.Deadline.Sub(at))
}

// In these texts, %s is the owner.
var happenings = map[string]string{
	follow.Held:     "Held by %s when this page was opened",
	follow.Free:     "Free when this page was opened",
	follow.Taken:    "Acquired by %s",
	follow.Passed:   "Passed to %s",
	follow.Released: "Released by %s",
	follow.Expired:  "The lease of %s expired",
	follow.Gone:     "%s no longer holds it",
	follow.Entered:  "Hold count raised by %s",
	follow.Left:     "Hold count lowered by %s",
	follow.Queued:   "%s is queued",
	follow.Quit:     "%s left the queue",
}

// Happening returns the description of an event, split where the owner belongs.
func Happening(e Event) []string {
	said := happenings[e.What]
	if e.What == follow.Passed && e.From == e.Owner {
		said = "Released and reacquired by %s"
	}
	return strings.Split(said, "%s")
}

// Matches returns a function that reports whether a name contains query or, if query contains * or ?, matches it.
func Matches(query string) func(name string) bool {
	if strings.ContainsAny(query, "*?") {
		return inspect.Match(query)
	}
	return func(name string) bool { return strings.Contains(name, query) }
}
