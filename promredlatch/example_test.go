package promredlatch_test

import (
	"context"
	"log"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/promredlatch"
)

// A program with its metrics at /metrics.
func ExampleNew() {
	ctx := context.Background()
	serve := func() error {
		metrics := promredlatch.New()
		prometheus.MustRegister(metrics)
		client, err := redlatch.Open(ctx, "redis://localhost:6379", redlatch.WithObserver(metrics.Observer()))
		if err != nil {
			return err
		}
		defer client.Close() //nolint:errcheck // it ends the program
		http.Handle("/metrics", promhttp.Handler())
		return http.ListenAndServe(":2112", nil)
	}
	if err := serve(); err != nil {
		log.Print(err)
	}
}

// Groups suit names that begin with one of a few prefixes.
func ExampleWithGroup() {
	prefix := func(name string) string {
		before, _, _ := strings.Cut(name, ":") // "orders" for "orders:42"
		return before
	}
	prometheus.MustRegister(promredlatch.New(promredlatch.WithGroup(prefix)))
}
