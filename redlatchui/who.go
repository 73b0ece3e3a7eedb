package redlatchui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const (
	clientRows  = 200
	shownSteps  = 50
	aboutServer = "server"
	firstScan   = "The first scan is in progress. Its results will appear when it finishes."
)

// whoPage is about a single client if ID is set, and otherwise about all clients.
type whoPage struct {
	frame
	Query       string
	Rows        []board.Client
	Found, More int
	Circles     []inspect.Circle
	ID          string
	Client      board.Client
}

func (p *Page) who(r *http.Request) (template string, _ any, err error) {
	all, err := current(r, p.board.Locks)
	if err != nil {
		return "", nil, err
	}
	q, template := r.URL.Query(), "who.html"
	page := whoPage{frame: p.frame("Clients"), Query: q.Get("q"), ID: q.Get("client")}
	page.Query = page.Query[:min(len(page.Query), longestQuery)]
	page.Section, page.Stream = "who", "events"
	if page.ID != "" {
		page.Title, template = board.NameText(page.ID), "client.html"
	}
	if all == nil {
		page.Err = firstScan
	} else {
		page.fill(all)
	}
	return template, &page, nil
}

func (page *whoPage) fill(all *board.Locks) {
	page.seen(&all.Seen)
	if all.Total > len(all.Entries) && page.Err == "" {
		page.Err = fmt.Sprintf("There are %d locks. Only the %d with the most trouble are examined here.", all.Total, len(all.Entries))
	}
	page.Circles = all.Circles
	if page.ID != "" {
		page.fillOne(all)
		return
	}
	for _, c := range all.Clients {
		if strings.Contains(c.ID, page.Query) || strings.Contains(c.Label, page.Query) {
			page.Rows = append(page.Rows, c)
		}
	}
	slices.SortStableFunc(page.Rows, func(a, b board.Client) int {
		switch {
		case a.InCircle && !b.InCircle:
			return -1
		case b.InCircle && !a.InCircle:
			return 1
		}
		return cmp.Compare(len(b.Holds)+len(b.Waits), len(a.Holds)+len(a.Waits))
	})
	page.Found, page.Rows = len(page.Rows), top(page.Rows, clientRows)
	page.More = page.Found - len(page.Rows)
}

func (page *whoPage) fillOne(all *board.Locks) {
	if c := all.Client(page.ID); c != nil {
		page.Client = *c
	}
	if page.Client.Label != "" {
		page.Title = board.LabelText(page.Client.Label)
	}
	page.Circles = nil
	for _, c := range all.Circles {
		if slices.ContainsFunc(c, func(s inspect.Step) bool { return board.ClientID(s.Waiter) == page.ID }) {
			page.Circles = append(page.Circles, c)
		}
	}
}

func (page *whoPage) Holds() []board.Hold { return top(page.Client.Holds, clientRows) }

func (page *whoPage) Waits() []board.Wait { return top(page.Client.Waits, clientRows) }

func (page *whoPage) Others(owner string) int {
	n := -1
	for i := range page.Client.Holds {
		if page.Client.Holds[i].Owner == owner {
			n++
		}
	}
	return n
}

func (page *whoPage) Oldest(c board.Client) string {
	var oldest board.Age
	for i := range c.Holds {
		if a := c.Holds[i].Age; oldest.Since.IsZero() || a.Since.Before(oldest.Since) {
			oldest = a
		}
	}
	return page.Span(oldest.Since)
}

func worst(c board.Client) string {
	for i := range c.Holds {
		if c.Holds[i].Trouble != "" {
			return c.Holds[i].Trouble
		}
	}
	return ""
}

func clientOf(c board.Client) named { return named{Name: clientName(c), Link: clientLink(c.ID)} }

func clientName(c board.Client) string {
	switch {
	case c.Label != "":
		return board.LabelText(c.Label)
	case c.Kind == "unknown":
		return board.NameText(c.ID)
	}
	return c.Name() + " " + strings.TrimSuffix(inspect.OwnerNumber(c.ID+":0"), ":0")
}

func stepsOf(c inspect.Circle) []inspect.Step { return top(c, shownSteps) }

type serverPage struct {
	frame
	Findings         []diagnosis.Finding
	Errors, Warnings int
	Took             string
}

func (p *Page) server(r *http.Request) (template string, _ any, err error) {
	exam, err := current(r, p.board.Server)
	if err != nil {
		return "", nil, err
	}
	page := serverPage{frame: p.frame("Server")}
	page.Section, page.Stream = "server", "events?about="+aboutServer
	if exam == nil {
		page.Err = notAnswered
	} else {
		page.fill(exam)
	}
	return "server.html", &page, nil
}

func (page *serverPage) fill(exam *board.Exam) {
	page.seen(&exam.Seen)
	page.Took = exam.Took.Round(time.Millisecond).String()
	page.Findings = slices.Clone(exam.Findings)
	slices.SortStableFunc(page.Findings, func(a, b diagnosis.Finding) int { return cmp.Compare(b.Level, a.Level) })
	for i := range page.Findings {
		switch page.Findings[i].Level {
		case diagnosis.Error:
			page.Errors++
		case diagnosis.Warning:
			page.Warnings++
		}
	}
}
