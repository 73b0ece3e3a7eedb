package otelredlatch_test

import (
	"context"
	"log"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/otelredlatch"
	"github.com/redlatch/redlatch/rlock"
)

// The program sets the global providers; see go.opentelemetry.io/otel.
func ExampleNew() {
	ctx := context.Background()
	ship := func() error {
		telemetry, err := otelredlatch.New()
		if err != nil {
			return err
		}
		client, err := redlatch.Open(ctx, "redis://localhost:6379", redlatch.WithObserver(telemetry.Observer()))
		if err != nil {
			return err
		}
		defer client.Close() //nolint:errcheck // it ends the program
		return rlock.New(client, "orders:42").Do(ctx, func(ctx context.Context) error { return ctx.Err() })
	}
	if err := ship(); err != nil {
		log.Print(err)
	}
}

// Groups are for names with one of few prefixes.
func ExampleWithGroup() {
	prefix := func(name string) string {
		before, _, _ := strings.Cut(name, ":") // "orders" of "orders:42"
		return before
	}
	_, err := otelredlatch.New(otelredlatch.WithGroup(prefix), otelredlatch.WithHashedNames([]byte("a secret of the fleet")))
	if err != nil {
		log.Print(err)
	}
}

// handedOver is sent to another process, for instance in a job queue.
type handedOver struct {
	Owner       codec.Owner
	Traceparent string
}

// One process hands over a lock and another resumes it, in one trace: the traceparent header
// is sent with the owner.
func Example_handOver() {
	var traces propagation.TraceContext

	// The first process.
	give := func(ctx context.Context, hold *rlock.Hold) (handedOver, error) {
		owner, err := hold.HandOver()
		if err != nil {
			return handedOver{}, err
		}
		headers := propagation.MapCarrier{}
		traces.Inject(ctx, headers)
		return handedOver{owner, headers["traceparent"]}, nil
	}

	// The second process: its redlatch.lock span is a child of the first process's span.
	take := func(ctx context.Context, l *rlock.Lock, from handedOver) (*rlock.Hold, error) {
		ctx = traces.Extract(ctx, propagation.MapCarrier{"traceparent": from.Traceparent})
		return l.Resume(ctx, from.Owner)
	}

	_, _ = give, take // see TestHandOverPropagatesTrace
}
