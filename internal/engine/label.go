package engine

import (
	"context"

	"github.com/redlatch/redlatch/internal/label"
	"github.com/redlatch/redlatch/transport"
)

// Announce sees to it that the client's label is on the server, if it has one, from
// now until the client is closed. It does not block, and costs one look at a flag
// once the label is kept.
func (e *Engine) Announce() { e.label.Start() }

// newLabelWriter returns what keeps the client's label, nil when there is none.
func newLabelWriter(e *Engine) *label.Writer {
	if e.Label == "" {
		return nil
	}
	return label.New(label.Config{
		Key:         label.Key(e.ClientID),
		Text:        e.Label,
		Go:          e.Go,
		Send:        e.sendAside,
		Reconnected: e.Reconnected,
		Join:        e.Join,
		Leave:       e.Leave,
		Logger:      e.Logger,
	})
}

// sendAside runs one call that no caller waits for, also while the client shuts
// down. It takes no longer than a command may, and ends when stop is closed.
func (e *Engine) sendAside(stop <-chan struct{}, fill func(*transport.Call)) error {
	a := e.Attempt()
	fill(&a.Call)
	_, err := a.run(context.Background(), e.Command, stop)
	return err
}
