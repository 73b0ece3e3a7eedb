package rueidis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

var (
	errClosed  = errors.New("rueidis: the connection was closed")
	errListens = errors.New("rueidis: the connection listens, and sends nothing")
)

// dedicated is one of the client's connections, and ours alone until it is closed.
type dedicated struct {
	client rueidis.DedicatedClient
	closed chan struct{}

	once sync.Once
	err  error // why it was closed; set before closed is
}

// Err returns why the connection is of no use any more, nil while it is.
func (d *dedicated) Err() error {
	select {
	case <-d.closed:
		return d.err
	default:
		return nil
	}
}

// Close ends the connection at once. rueidis may need a second to let go of one whose
// server is silent, which is not waited for.
func (d *dedicated) Close() error {
	_ = d.end(errClosed)
	return nil
}

// end closes the connection, unless it is closed, and returns why that was done first.
func (d *dedicated) end(why error) error {
	d.once.Do(func() {
		d.err = why
		close(d.closed)
		go d.client.Close()
	})
	return d.err
}

// orClosed returns why rueidis has given a connection up.
func orClosed(err error) error {
	if err == nil {
		return errClosed
	}
	return err
}

// ask sends a command and waits for the reply as long as ctx says. What the server says
// is no error; an error ends the connection.
func (d *dedicated) ask(ctx context.Context, command string, args ...any) (rueidis.RedisResult, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.end(context.Cause(ctx)) })
	r := d.client.Do(context.Background(), d.client.B().Arbitrary(command).Args(texts(args)...).Blocking())
	if err := r.NonRedisError(); !stop() || err != nil {
		return r, d.end(orClosed(err))
	}
	return r, nil
}

// take takes a connection from client, which makes one if it has none that is idle, and
// whose server has answered. rueidis knows no way to stop it once it has begun: when ctx
// ends first the connection is given back as soon as it is there.
func take(ctx context.Context, client rueidis.Client) (redis.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	came := make(chan rueidis.DedicatedClient)
	go func() {
		made, _ := client.Dedicate()
		select {
		case came <- made:
		case <-ctx.Done():
			made.Close()
		}
	}()
	select {
	case made := <-came:
		d := &dedicated{client: made, closed: make(chan struct{})}
		if _, err := d.ask(ctx, "PING"); err != nil {
			return nil, err
		}
		return &conn{dedicated: d, decided: make(chan struct{})}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the rueidis client gave no connection: %w", context.Cause(ctx))
	}
}
