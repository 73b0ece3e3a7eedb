package list

import (
	"fmt"
	"io"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
)

const (
	// barAfter is how long a scan is quiet on a terminal, barEvery how often it tells
	// after that.
	barAfter = 500 * time.Millisecond
	barEvery = 200 * time.Millisecond
	// noteEvery is how often it tells elsewhere.
	noteEvery = 5 * time.Second
)

// bar tells how far a scan is: on a terminal in one line that is written over and
// over, elsewhere in a line now and then. A nil bar tells nothing.
type bar struct {
	out   io.Writer
	live  bool
	next  time.Time
	drawn bool
}

func newBar(out io.Writer) *bar {
	b := &bar{out: out, live: cli.IsLive(out), next: time.Now().Add(noteEvery)}
	if b.live {
		b.next = time.Now().Add(barAfter)
	}
	return b
}

// show tells that a part of the keys, from 0 to 1, was looked at, if it is time to.
func (b *bar) show(done float64, locks int) {
	now := time.Now()
	if b == nil || now.Before(b.next) {
		return
	}
	said := fmt.Sprintf("%.0f%% of the keys looked at, %s", 100*done, (&tally{locks: locks}).of(locks))
	if !b.live {
		cli.Messagef(b.out, "%s", said)
		b.next = now.Add(noteEvery)
		return
	}
	fmt.Fprint(b.out, "\r"+said+"\x1b[K")
	b.next, b.drawn = now.Add(barEvery), true
}

// clear takes the line off the terminal.
func (b *bar) clear() {
	if b != nil && b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = false
	}
}

// message writes a message to standard error.
func (l *lister) message(format string, args ...any) {
	cli.Messagef(l.errors, format, args...)
}
