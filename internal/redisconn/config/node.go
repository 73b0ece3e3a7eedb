package config

import (
	"errors"
	"strings"
)

// NodeError is an error of one server of a cluster, or of the master that Sentinels name.
type NodeError struct {
	// Addr is host:port, as it was dialed.
	Addr string
	// Err is what went wrong.
	Err error
}

// AtNode returns err as an error of the server at addr. Nil stays nil, and an error that names a
// server stays as it is.
func AtNode(addr string, err error) error {
	var node *NodeError
	if err == nil || errors.As(err, &node) {
		return err
	}
	return &NodeError{Addr: addr, Err: err}
}

// Error names the server if Err does not.
func (n *NodeError) Error() string {
	text := n.Err.Error()
	if strings.Contains(text, n.Addr) {
		return text
	}
	return text + " (" + n.Addr + ")"
}

// Unwrap returns Err.
func (n *NodeError) Unwrap() error { return n.Err }
