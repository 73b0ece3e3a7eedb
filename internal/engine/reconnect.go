package engine

import "github.com/redlatch/redlatch/transport"

// LossTeller is implemented by transports that tell when a connection was lost, and not
// only when another one was made in its place.
type LossTeller interface {
	// Lost returns a channel that is closed with the next loss.
	Lost() <-chan struct{}
}

// doubted returns a channel that is closed when the server may have forgotten locks: a
// connection was lost, or another server is the master. Of a transport that tells only
// when a connection was replaced it is that, nil of one that tells nothing.
func (e *Engine) doubted() <-chan struct{} {
	if t, ok := e.Transport.(LossTeller); ok {
		return t.Lost()
	}
	return e.Reconnected()
}

// Reconnected returns a channel that is closed when a command connection was made
// in place of a lost one, nil where the transport does not tell.
func (e *Engine) Reconnected() <-chan struct{} {
	if r, ok := e.Transport.(transport.Reconnecter); ok {
		return r.Reconnected()
	}
	return nil
}
