package gocronredlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/gocronredlatch"
)

// open returns a client for a server in this process, and a function that closes both.
func open() (*redlatch.Client, func()) {
	srv, err := embedded.Start(embedded.WithInProcess())
	if err != nil {
		log.Panic(err)
	}
	client, err := redlatch.New(srv.Dial)
	if err != nil {
		log.Panic(err)
	}
	return client, func() { _ = client.Close(); srv.Close() }
}

func ExampleErrNotLeader() {
	client, stop := open()
	defer stop()

	elector, err := gocronredlatch.NewElector(client, gocronredlatch.ElectorConfig{Name: "jobs"})
	if err != nil {
		log.Panic(err)
	}
	err = elector.IsLeader(context.Background()) // Run has not been called
	fmt.Println(errors.Is(err, gocronredlatch.ErrNotLeader))
	// Output: true
}

func ExampleErrOffSchedule() {
	client, stop := open()
	defer stop()

	period := 2 * time.Duration(time.Now().UnixNano()) // half of it has passed since 1970
	locker, err := gocronredlatch.NewLocker(client, gocronredlatch.LockerConfig{Period: period})
	if err != nil {
		log.Panic(err)
	}
	_, err = locker.Lock(context.Background(), "report")
	fmt.Println(errors.Is(err, gocronredlatch.ErrOffSchedule))
	// Output: true
}
