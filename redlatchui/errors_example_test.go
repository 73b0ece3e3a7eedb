package redlatchui_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchui"
)

func ExampleErrCluster() {
	client, err := redlatch.NewWithTransport(slotted{}) // of an adapter, to a cluster
	if err != nil {
		log.Panic(err)
	}
	defer client.Close() //nolint:errcheck // it ends the program

	_, err = redlatchui.New(client, redlatchui.Options{})
	fmt.Println(errors.Is(err, redlatchui.ErrCluster))
	// Output: true
}
