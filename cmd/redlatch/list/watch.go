package list

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/output"
)

// repeat lists the locks until ctx ends. A server that goes away after the first look is
// reported and waited for.
func (l *lister) repeat(ctx context.Context) error {
	draw := l.draw
	if f, is := l.out.(*os.File); is && output.IsLive(f) {
		screen := output.NewScreen(f)
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
			lines = []string{err.Error()}
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

// picture looks once. It keeps a page of rows at most, the first that were found.
func (l *lister) picture(ctx context.Context) ([]string, error) {
	var rows []row
	n := 0
	err := l.scan(ctx, nil, func(lock *listing.Lock) error {
		if n++; len(rows) < page {
			rows = append(rows, rowOf(lock))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortRows(rows)
	look := lookOf(l.out)
	lines := []string{fmt.Sprintf("%s  %d locks%s", time.Now().UTC().Format(time.TimeOnly+"Z"), n, l.matching()), heading(look)}
	for i := range rows {
		lines = append(lines, rows[i].lines(look)...)
	}
	return lines, nil
}
