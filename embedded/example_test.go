package embedded_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/embedded"
)

// A server on a free port, for a program that needs a URL.
func Example() {
	srv, err := embedded.Start()
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()

	conn, err := redis.DialURL(srv.URL())
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = conn.Close() }()
	fmt.Println(conn.Do("SET", "greeting", "hello", "PX", 30_000))
	fmt.Println(redis.String(conn.Do("GET", "greeting")))
	// Output:
	// OK <nil>
	// hello <nil>
}

// No port at all: srv.Dial is what redlatch.New takes.
func ExampleWithInProcess() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()

	conn, err := srv.Dial(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = conn.Close() }()
	fmt.Println(conn.Do("PING"))
	// Output: PONG <nil>
}

// The command runs, and its reply is lost.
func ExampleServer_LoseReplies() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()

	srv.LoseReplies(1)
	for range 2 {
		conn, err := srv.Dial(context.Background())
		if err != nil {
			log.Print(err)
			return
		}
		n, err := redis.Int(conn.Do("INCR", "counter"))
		fmt.Println(n, err != nil)
		_ = conn.Close() // the first is already closed
	}
	// Output:
	// 0 true
	// 2 false
}

// A key with a TTL of an hour expires immediately.
func ExampleServer_FastForward() {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Print(err)
		return
	}
	defer srv.Close()

	conn, err := srv.Dial(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Do("SET", "lease", "held", "EX", 3600)
	srv.FastForward(time.Hour)
	fmt.Println(conn.Do("EXISTS", "lease"))
	// Output: 0 <nil>
}
