package control

import (
	"context"
	"errors"
)

// Server is not there on Windows.
type Server struct{}

// Request is not there on Windows.
type Request struct{}

// Path returns an error: there are no shells that take assignments.
func Path(string) (string, error) { return "", errors.ErrUnsupported }

// Listen returns an error.
func Listen(string) (*Server, error) { return nil, errors.ErrUnsupported }

// Path returns nothing.
func (s *Server) Path() string { return "" }

// Requests returns a channel without requests.
func (s *Server) Requests() <-chan Request { return nil }

// Close does nothing.
func (s *Server) Close() {}

// Answer does nothing.
func (r Request) Answer(Answer) {}

// Ask returns an error.
func Ask(context.Context, string, string) (Answer, error) { return Answer{}, errors.ErrUnsupported }
