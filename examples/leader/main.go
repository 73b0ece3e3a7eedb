// Command leader leads while it holds a lock, and stands by while another one does.
// A leader that loses the lock steps down before the next one can begin, if its work
// heeds its context; one that is asked to stop makes way at once; one that dies is
// followed when its lease is over, six seconds here. Copy it.
//
//	go run ./examples/leader redis://localhost:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/leader"
)

// lease is how long there is no leader after one died. It is renewed every third of it;
// Redis that cannot be reached for about as long ends the leadership, too.
const lease = 6 * time.Second

func main() {
	url := "redis://localhost:6379"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if err := run(url); err != nil {
		log.Fatal(err)
	}
}

func run(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(lease))
	if err != nil {
		return err
	}
	err = leader.Run(ctx, client, "leader-example", leader.Config{
		Lead:    lead,
		OnError: func(err error) { fmt.Println("stepped down:", err) },
	})
	return errors.Join(err, client.Close())
}

// lead stands for what only the leader does. It must return soon after ctx ends: by
// then another one may lead.
func lead(ctx context.Context) error {
	fmt.Println("leading")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C: // a piece of work
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
