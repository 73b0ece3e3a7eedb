package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/output"
)

const (
	// laneWidth is how many moments of a worker's recent past are shown.
	laneWidth = 28
	// messageLines is how many messages are shown.
	messageLines = 3
)

// view is the live picture of a run: a table with a lane for each process.
type view struct {
	look     output.Look
	headline string
	titles   []string     // where the lock is
	lanes    [][]activity // what each process was doing, newest last
}

// picture is what a view shows at one moment.
type picture struct {
	clock       string // how far the run is
	unit        string // what the processes count
	workers     []*workerState
	noSuccessor bool     // no worker has had the lock since the kill
	below       []string // lines below the table
	messages    []string
}

// sample remembers what the processes are doing at this moment.
func (v *view) sample(workers []*workerState) {
	for len(v.lanes) < len(workers) {
		v.lanes = append(v.lanes, nil)
	}
	for i, c := range workers {
		lane := append(v.lanes[i], c.activity)
		v.lanes[i] = lane[max(0, len(lane)-laneWidth):]
	}
}

// lines draws the picture, at most 79 columns wide.
func (v *view) lines(p *picture, now time.Time) []string {
	lines := []string{v.look.Paint(output.Bold, fmt.Sprintf("%-60s", v.headline)) + fmt.Sprintf("%19s", p.clock)}
	for _, title := range v.titles {
		lines = append(lines, v.look.Paint(output.Dim, title))
	}
	lines = append(lines, "", v.look.Paint(output.Dim, fmt.Sprintf("    %7s  %-13s%6s%9s%8s  LAST %s",
		"PID", "STATE", p.unit, "WAIT p50", "p99", short(laneWidth*tick))))
	for i, c := range p.workers {
		lines = append(lines, v.worker(p, c, v.lanes[i], now))
	}
	lines = append(lines, v.legend(), "")
	lines = append(append(lines, p.below...), "")
	news := p.messages[max(0, len(p.messages)-messageLines):]
	for i := range messageLines {
		line := ""
		if i < len(news) {
			line = news[i]
		}
		lines = append(lines, line)
	}
	return lines
}

// worker draws one row of the table.
func (v *view) worker(p *picture, c *workerState, lane []activity, now time.Time) string {
	label := string(c.activity)
	if c.activity == waits || c.activity == dead && p.noSuccessor {
		label += " " + ago(now.Sub(c.since))
	}
	return fmt.Sprintf("  %d %7d  %s%6d%9s%8s  %s",
		c.id, c.pid, v.look.Paint(colourOf(c.activity), fmt.Sprintf("%-13s", label)), c.rounds,
		millis(percentile(c.waits, 50)), millis(percentile(c.waits, 99)), v.lane(lane))
}

// ago shows a time that is running, without digits that only flicker.
func ago(d time.Duration) string {
	if d < 200*time.Millisecond {
		return ""
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func colourOf(s activity) output.Colour {
	switch s {
	case holds:
		return output.Green
	case waits:
		return output.Yellow
	case dead, broke:
		return output.Red
	}
	return output.Dim
}

// lane draws a worker's recent past, runs of one state in one go.
func (v *view) lane(lane []activity) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", laneWidth-len(lane)))
	for i := 0; i < len(lane); {
		end := i + 1
		for end < len(lane) && lane[end] == lane[i] {
			end++
		}
		b.WriteString(v.look.Paint(colourOf(lane[i]), strings.Repeat(v.glyph(lane[i]), end-i)))
		i = end
	}
	return b.String()
}

func (v *view) glyph(s activity) string {
	switch s {
	case holds:
		return v.look.Glyph("█", "#")
	case waits:
		return v.look.Glyph("·", ".")
	case dead, broke:
		return v.look.Glyph("×", "x")
	}
	return " "
}

// legend explains the lanes, below them.
func (v *view) legend() string {
	var parts []string
	for _, s := range []activity{holds, waits, dead} {
		parts = append(parts, v.look.Paint(colourOf(s), v.glyph(s))+" "+strings.ToLower(string(s)))
	}
	return strings.Repeat(" ", 51) + strings.Join(parts, "  ")
}

// countText shows how often two workers held the lock at once.
func (v *view) countText(violations int) string {
	if violations > 0 {
		return v.look.Paint(output.Red, fmt.Sprintf("%d times", violations))
	}
	return v.look.Paint(output.Green, "never")
}
