package redlatchui

import (
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

// aboutServer names the stream of examinations.
const aboutServer = "server"

// serverPage is the page of the server.
type serverPage struct {
	frame
	Findings             []findingView
	Errors, Warnings     int
	Took, Every, NotMade string
}

// findingView is a finding as it is shown.
type findingView struct{ Key, Check, Level, Found, Advice, Command string }

// server serves the page of the server.
func (p *Page) server(w http.ResponseWriter, r *http.Request) {
	exam, err := current(r.Context(), p.board.Server)
	if err != nil {
		p.fail(w, err)
		return
	}
	page := serverPage{
		frame: p.frame("Server", "events?about="+aboutServer), Every: span(board.ExamEvery),
		NotMade: strings.Join(diagnosis.NotLooked(), ", "),
	}
	if page.Section = "server"; exam == nil {
		page.Err = notAnswered
	} else {
		page.fill(exam)
	}
	p.show(w, "server.html", &page)
}

// fill puts the findings in, the worst first.
func (page *serverPage) fill(exam *board.Exam) {
	page.seen(&exam.Seen)
	if exam.At.IsZero() {
		return
	}
	page.Took = exam.Took.Round(time.Millisecond).String()
	for _, level := range []diagnosis.Level{diagnosis.Error, diagnosis.Warning, diagnosis.Unknown, diagnosis.OK} {
		for _, f := range exam.Findings {
			if f.Level != level {
				continue
			}
			page.Findings = append(page.Findings, findingView{
				page.key(f.Check), f.Check, level.String(), sanitize.Message(f.Found), sanitize.Message(f.Advice), sanitize.Message(f.Command),
			})
			page.Errors += btoi(level == diagnosis.Error)
			page.Warnings += btoi(level == diagnosis.Warning)
		}
	}
}
