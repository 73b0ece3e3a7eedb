package transporttest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/transport"
)

// command makes a call of a plain command.
func command(name string, keys int, args ...any) *transport.Call {
	return &transport.Call{Command: name, NumKeys: keys, Args: args}
}

// eval makes a call of a script.
func eval(s *transport.Script, keys int, args ...any) *transport.Call {
	return &transport.Call{Script: s, NumKeys: keys, Args: args}
}

// plain makes replies comparable: text is a string, an error is its text.
func plain(reply any) any {
	switch r := reply.(type) {
	case []byte:
		return string(r)
	case []any:
		all := make([]any, len(r))
		for i := range r {
			all[i] = plain(r[i])
		}
		return all
	case *transport.ServerError:
		return "error: " + r.Text
	case error:
		return fmt.Sprintf("a %T, which is not of package transport: %v", r, r)
	}
	return reply
}

// class is which of the contract's errors an error is.
type class string

const (
	answered    class = "answered"
	notSent     class = "not sent"
	uncertain   class = "uncertain"
	serverError class = "server error"
	outside     class = "outside of the contract"
)

// classify finds the class of an error. One that is of two classes, or of none,
// is outside of the contract.
func classify(err error) class {
	if err == nil {
		return answered
	}
	found, n := outside, 0
	var se *transport.ServerError
	if errors.Is(err, transport.ErrNotSent) {
		found, n = notSent, n+1
	}
	if errors.Is(err, transport.ErrUncertain) {
		found, n = uncertain, n+1
	}
	if errors.As(err, &se) && n == 0 {
		// ErrNotSent may well wrap why the server refused the connection.
		found, n = serverError, n+1
	}
	if n != 1 {
		return outside
	}
	return found
}

// inContract holds that an error is one of the contract's.
func (f *fixture) inContract(err error) {
	f.t.Helper()
	assert.NotEqual(f.t, outside, classify(err), "the error is not one of the contract's, or two of them: %v", err)
}

// isNotSent holds that a call ended as not sent, without a reply.
func (f *fixture) isNotSent(o outcome) {
	f.t.Helper()
	assert.Equal(f.t, notSent, classify(o.err), "%v", o.err)
	assert.Nil(f.t, o.reply)
}

// isUncertain holds that a call ended as uncertain, without a reply.
func (f *fixture) isUncertain(o outcome) {
	f.t.Helper()
	assert.Equal(f.t, uncertain, classify(o.err), "%v", o.err)
	assert.Nil(f.t, o.reply)
}
