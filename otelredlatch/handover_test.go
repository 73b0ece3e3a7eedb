package otelredlatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestAHandedOverOwnerTakesItsTraceAlong(t *testing.T) {
	t.Parallel()
	var traces propagation.TraceContext
	c := collect(t)
	_, client := c.open()
	l := rlock.New(client, redistest.Key(t))
	ctx, root := c.root()
	hold, err := l.Lock(ctx)
	require.NoError(t, err)
	owner, err := hold.HandOver()
	require.NoError(t, err)
	headers := propagation.MapCarrier{}
	traces.Inject(ctx, headers)

	other := collect(t)
	_, client = other.open()
	there := traces.Extract(t.Context(), propagation.MapCarrier{"traceparent": headers["traceparent"]})
	resumed, err := rlock.New(client, l.Name()).Resume(there, owner)
	require.NoError(t, err)
	require.NoError(t, resumed.Unlock())
	lock := other.only("redlatch.lock")
	require.Equal(t, "resume", attrs(lock.Attributes())["redlatch.operation"])
	require.Equal(t, root.SpanContext().TraceID(), lock.SpanContext().TraceID())
	require.Equal(t, root.SpanContext().SpanID(), lock.Parent().SpanID())
	require.Equal(t, root.SpanContext().TraceID(), other.only("redlatch.unlock").SpanContext().TraceID())
}
