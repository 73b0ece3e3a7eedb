package redlatchui

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Access is what a viewer may do. Rights are joined with |.
type Access uint8

const (
	// NoAccess shows nothing: requests are answered with 403.
	NoAccess Access = 0
	// ReadOnly shows all that the page shows, and changes nothing.
	ReadOnly Access = 1
	// MayUnlock is ReadOnly with the action ActionUnlock.
	MayUnlock = ReadOnly | 1<<1
	// MayEvict is ReadOnly with the action ActionEvict.
	MayEvict = ReadOnly | 1<<2
	// FullAccess is ReadOnly with all actions, also those that later versions have.
	FullAccess Access = 0xff
)

// Why a viewer is refused.
var (
	errNoAccess = errors.New("you may not see this page")
	errNoRight  = errors.New("you may not do this")
)

// may reports whether a has the right, or all of them.
func (a Access) may(right Access) bool { return a&right == right }

// needs returns why a viewer is refused that for which the right is needed, nil if a has it.
func (a Access) needs(right Access) error {
	switch {
	case !a.may(ReadOnly):
		return errNoAccess
	case !a.may(right):
		return errNoRight
	}
	return nil
}

// isDenied reports whether err is one of needs.
func isDenied(err error) bool { return errors.Is(err, errNoAccess) || errors.Is(err, errNoRight) }

// access returns what the viewer who sends a request may do.
func (o *Options) access(r *http.Request) Access {
	a := ReadOnly
	if o.Access != nil {
		a = o.Access(r)
	}
	if o.ReadOnly {
		a &= ReadOnly
	}
	return a
}

// changesNothing reports whether no viewer may change anything.
func (o *Options) changesNothing() bool { return o.Access == nil || o.ReadOnly }

// accessKey is the key of a request's Access in its context.
type accessKey struct{}

// accessOf returns what admit has found.
func accessOf(r *http.Request) Access {
	a, _ := r.Context().Value(accessKey{}).(Access)
	return a
}

// admit lets requests through to next of viewers who may see the page, once asked for each
// request. Actions refuse by themselves, so that the audit has what was tried. Styles and scripts
// are no secrets.
func (p *Page) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/static/") {
			next.ServeHTTP(w, r)
			return
		}
		a := p.options.access(r)
		if err := a.needs(ReadOnly); err != nil && r.Method != http.MethodPost {
			p.fail(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accessKey{}, a)))
	})
}
