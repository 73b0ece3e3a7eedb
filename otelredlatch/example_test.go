package otelredlatch_test

import (
	"context"
	"log"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/otelredlatch"
	"github.com/redlatch/redlatch/rlock"
)

// The global providers are those of the program; see go.opentelemetry.io/otel.
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

// Groups are for names that have a prefix, of which there are few.
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

// handedOver is what travels to another process, in a job queue for instance.
type handedOver struct {
	Owner       redlatch.Owner
	Traceparent string
}

// A lock that one process hands over and another one resumes, in one trace: the traceparent
// header travels beside the owner.
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

	// The other one: its redlatch.lock is a child of the first one's span.
	take := func(ctx context.Context, l *rlock.Lock, from handedOver) (*rlock.Hold, error) {
		ctx = traces.Extract(ctx, propagation.MapCarrier{"traceparent": from.Traceparent})
		return l.Resume(ctx, from.Owner)
	}

	_, _ = give, take // see TestHandOverPropagatesTrace
}
