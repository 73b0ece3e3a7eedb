package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// echo is a transport to a server that is not Redis.
type echo struct{ transport.Transport }

func (echo) Start(call *transport.Call, done transport.Done) {
	if call.Claim(0) {
		done("echo", nil)
	}
}
func (echo) PublishCommand() string { return "PUBLISH" }
func (echo) Close() error           { return nil }

func ExampleErrBadReply() {
	client, err := redlatch.NewWithTransport(echo{})
	if err != nil {
		log.Panic(err)
	}
	defer client.Close() //nolint:errcheck // it ends the program

	_, err = rlock.New(client, "orders:42").TTL(context.Background())
	fmt.Println(errors.Is(err, transport.ErrBadReply))
	// Output: true
}

func ExampleServerError() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	defer srv.Close()
	client, err := redlatch.New(srv.Dial)
	if err != nil {
		log.Panic(err)
	}
	defer client.Close() //nolint:errcheck // it ends the program

	srv.FailWith("NOPERM User app has no permissions to run the 'evalsha' command")
	_, err = rlock.New(client, "orders:42").TryLock(context.Background())
	var answer *transport.ServerError
	if errors.As(err, &answer) {
		fmt.Println(answer.Code())
	}
	// Output: NOPERM
}
