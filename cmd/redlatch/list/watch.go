package list

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// repeat lists the locks until ctx ends. A server that goes away after the first look is
// reported and waited for.
func (l *lister) repeat(ctx context.Context) error {
	draw := l.draw
	if cli.IsLive(l.out) {
		screen := cli.NewScreen(l.out)
		defer screen.Close()
		draw = screen.Draw
	}
	for first := true; ; first = false {
		began := time.Now()
		lines, err := l.picture(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			lines = []string{sanitize.Message(err.Error())}
		}
		draw(lines)
		if inspect.Pause(ctx, max(l.every, listing.PauseFactor*time.Since(began))) != nil {
			return nil
		}
	}
}

// draw writes a picture below the last one.
func (l *lister) draw(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(l.out, line)
	}
	fmt.Fprintln(l.out)
}

// pictured is how many locks a picture has at most, unless the user says.
const pictured = 1000

// picture looks once.
func (l *lister) picture(ctx context.Context) ([]string, error) {
	l.limit = cmp.Or(l.limit, pictured)
	locks, n, err := l.collect(ctx, nil)
	if err != nil {
		return nil, err
	}
	look, shown := cli.LookOf(l.out), tally{}
	for _, lock := range locks {
		shown.add(lock)
	}
	lines := []string{fmt.Sprintf("%s  %s%s", time.Now().UTC().Format(time.TimeOnly+"Z"), shown.of(n), l.matching()), heading(look)}
	if l.away != nil {
		lines = slices.Insert(lines, 1, sanitize.Message("not complete: "+l.away.Error()))
	}
	for _, lock := range locks {
		r := rowOf(lock)
		lines = append(lines, r.lines(look)...)
	}
	return lines, nil
}
