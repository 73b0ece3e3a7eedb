package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/redlatch/redlatch/internal/tool/connect"
)

// closing bounds how long Serve waits for unfinished responses.
const closing = 2 * time.Second

// Listen returns a TCP listener.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %s", address, connect.Reason(err))
	}
	return l, nil
}

// Serve serves until ctx ends, then calls stop, which must end streams, and waits for unfinished
// responses.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, stop func()) error {
	web := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute, // a stream extends its own deadline
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if err := web.Shutdown(bounded); err != nil {
		_ = web.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
