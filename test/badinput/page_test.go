package badinput_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchui"
)

// pages are pages on which each viewer may do all.
var pages = []value{
	{what: "page", make: func(w *world) any { return w.page() }},
	{what: "closed page", make: func(w *world) any {
		p := w.page()
		require.NoError(w.t, p.Close())
		return p
	}},
	mistake[*redlatchui.Page]("nil page", nilDeref),
}

var pageOptions = vals(redlatchui.Options{}, redlatchui.Options{Every: -1}, redlatchui.Options{Every: durations[len(durations)-2]},
	redlatchui.Options{Pattern: texts[len(texts)-1], Hosts: texts}, redlatchui.Options{Pattern: "[", Hosts: []string{""}})

func (w *world) page() *redlatchui.Page {
	w.t.Helper()
	p, err := redlatchui.New(w.client, redlatchui.Options{Access: func(*http.Request) redlatchui.Access { return redlatchui.FullAccess }})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, p.Close()) })
	return p
}

// newPage makes a page and closes it.
func newPage(client *redlatch.Client, o redlatchui.Options) error {
	p, err := redlatchui.New(client, o)
	if err != nil {
		return err
	}
	return p.Close()
}

// visit asks a page for all that it has, with a text for what a request can name. Each is
// answered, in few bytes.
func visit(p *redlatchui.Page, text string) error {
	is := url.QueryEscape(text)
	form := url.Values{"holder": {text}, "dead": {text}, "owner": {text}, "reason": {text}}.Encode()
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodGet, "http://localhost/?q="+is+"&only="+is+"&sort="+is+"&page="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/lock?name="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/lock?hash="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/unlock?name="+is, nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/evict?name=a&owner="+is, nil),
		httptest.NewRequest(http.MethodPost, "http://localhost/unlock?name="+is, strings.NewReader(form)),
		httptest.NewRequest(http.MethodPost, "http://localhost/evict?name="+is, strings.NewReader(text)),
	} {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Dest", text)
		got := httptest.NewRecorder()
		p.ServeHTTP(got, r)
		if got.Code == 0 || got.Body.Len() >= mebibyte {
			return fmt.Errorf("%s is answered with %d and %d bytes", r.URL.Path, got.Code, got.Body.Len())
		}
	}
	return nil
}
