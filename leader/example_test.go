package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/leader"
)

// A periodic job in one of many processes. In place of the ticker, start robfig/cron or
// asynq.Scheduler in Lead, and stop it before Lead returns.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	srv, err := embedded.Start() // in production: Redis
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := redlatch.Open(ctx, srv.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	tick := func(ctx context.Context) error {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for n := 1; ; n++ {
			select {
			case <-ticker.C:
				fmt.Println("job", n)
				if n == 3 {
					stop() // SIGTERM, say
				}
			case <-ctx.Done(): // another process may lead soon
				return context.Cause(ctx)
			}
		}
	}
	fmt.Println(leader.Run(ctx, client, "scheduler", leader.Config{Lead: tick}))
	// Output:
	// job 1
	// job 2
	// job 3
	// <nil>
}

// A server that only the leader runs: the load balancer sends requests to the process whose /ready
// returns 200.
func ExampleStatus() {
	client, err := redlatch.Open(context.Background(), "redis://localhost:6379", redlatch.WithWatchdogTimeout(6*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	var status leader.Status
	mux := http.NewServeMux()
	mux.Handle("/ready", &status)
	server := &http.Server{Addr: "localhost:8080", Handler: mux, ReadHeaderTimeout: time.Second}
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	err = leader.Run(context.Background(), client, "api", leader.Config{
		Lead:    func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		Status:  &status,
		OnError: func(err error) { log.Print("not the leader: ", err) },
	})
	log.Print(err)
}
