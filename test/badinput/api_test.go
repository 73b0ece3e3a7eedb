package badinput_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/exported"
	"github.com/redlatch/redlatch/leader"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// packages are those that users import, and the one that decodes what servers send, by
// their folders.
var packages = []string{".", "rlock", "rfairlock", "rfencedlock", "rreadwritelock", "rlatch", "rmultilock", "rsemaphore", "leader", "admin", "codec", "pubsub", "transport", "embedded", "redlatchui", "internal/reply"}

// functions are the exported functions and methods that are tried here. Options are
// tried with what they are options of.
var functions = map[string]any{
	"redlatch.New": redlatch.New, "redlatch.NewWithTransport": redlatch.NewWithTransport,
	"redlatch.PrefixMapper": redlatch.PrefixMapper,
	"redlatch.NewOwner":     redlatch.NewOwner, "redlatch.ParseOwner": redlatch.ParseOwner,
	"redlatch.WithClientID": redlatch.WithClientID, "redlatch.WithClientName": redlatch.WithClientName,
	"redlatch.WithCommandTimeout": redlatch.WithCommandTimeout, "redlatch.WithCredentials": redlatch.WithCredentials,
	"redlatch.WithDeadWaiterGrace": redlatch.WithDeadWaiterGrace, "redlatch.WithDialTimeout": redlatch.WithDialTimeout,
	"redlatch.WithFairWaitTimeout": redlatch.WithFairWaitTimeout, "redlatch.WithLogger": redlatch.WithLogger,
	"redlatch.WithLabel": redlatch.WithLabel, "redlatch.WithLazyConnect": redlatch.WithLazyConnect,
	"redlatch.WithLossMargin": redlatch.WithLossMargin, "redlatch.WithMaxWaiters": redlatch.WithMaxWaiters,
	"redlatch.WithNameMapper": redlatch.WithNameMapper, "redlatch.WithObserver": redlatch.WithObserver,
	"redlatch.WithPollCap": redlatch.WithPollCap, "redlatch.WithReplicaDialer": redlatch.WithReplicaDialer,
	"redlatch.WithReplicaSync":   redlatch.WithReplicaSync,
	"redlatch.WithShardedPubSub": redlatch.WithShardedPubSub,
	"redlatch.WithServerTime":    redlatch.WithServerTime, "redlatch.WithTLSConfig": redlatch.WithTLSConfig,
	"redlatch.WithWatchdogTimeout": redlatch.WithWatchdogTimeout,
	"redlatch.Client.ClockOffset":  (*redlatch.Client).ClockOffset, "redlatch.Client.Close": (*redlatch.Client).Close,
	"redlatch.Client.ID": (*redlatch.Client).ID, "redlatch.Client.Shutdown": (*redlatch.Client).Shutdown,
	"redlatch.Client.Stats": (*redlatch.Client).Stats, "redlatch.Client.StatsBy": (*redlatch.Client).StatsBy,
	"redlatch.ErrorType": redlatch.ErrorType, "redlatch.Observers": redlatch.Observers,
	"redlatch.NotAcquired.Outcome": redlatch.NotAcquired.Outcome,
	"redlatch.Ended.End":           redlatch.Ended.End, "redlatch.Ended.LossReason": redlatch.Ended.LossReason,
	"redlatch.LockError.Error": (*redlatch.LockError).Error, "redlatch.LockError.Unwrap": (*redlatch.LockError).Unwrap,
	"redlatch.Loss.Error": redlatch.Loss.Error, "redlatch.Loss.Unwrap": redlatch.Loss.Unwrap,

	"rlock.New": rlock.New, "rfairlock.New": rfairlock.New,
	"rlock.WithLease": rlock.WithLease, "rlock.WithMaxHold": rlock.WithMaxHold,
	"rlock.WithOwner": rlock.WithOwner, "rlock.WithPollCap": rlock.WithPollCap,
	"rlock.WithWait": rlock.WithWait, "rlock.WithoutWakeUps": rlock.WithoutWakeUps,
	"rlock.WithWatchdog":     rlock.WithWatchdog,
	"rlock.Lock.Do":          (*rlock.Lock).Do,
	"rlock.Lock.ForceUnlock": (*rlock.Lock).ForceUnlock, "rlock.Lock.HoldCount": (*rlock.Lock).HoldCount,
	"rlock.Lock.IsHeldBy": (*rlock.Lock).IsHeldBy,
	"rlock.Lock.IsLocked": (*rlock.Lock).IsLocked,
	"rlock.Lock.Lock":     (*rlock.Lock).Lock, "rlock.Lock.Name": (*rlock.Lock).Name,
	"rlock.Lock.Resume": (*rlock.Lock).Resume, "rlock.Lock.TTL": (*rlock.Lock).TTL,
	"rlock.Lock.TryLock": (*rlock.Lock).TryLock, "rlock.Lock.UnlockAs": (*rlock.Lock).UnlockAs,
	"rlock.Hold.Context": (*rlock.Hold).Context, "rlock.Hold.Err": (*rlock.Hold).Err,
	"rlock.Hold.HandOver": (*rlock.Hold).HandOver, "rlock.Hold.LetExpire": (*rlock.Hold).LetExpire,
	"rlock.Hold.Name": (*rlock.Hold).Name, "rlock.Hold.Owner": (*rlock.Hold).Owner,
	"rlock.Hold.Remaining": (*rlock.Hold).Remaining, "rlock.Hold.Unlock": (*rlock.Hold).Unlock,
	"rlock.Hold.UnlockAsync": (*rlock.Hold).UnlockAsync,

	"rfencedlock.New": rfencedlock.New, "rfencedlock.NewFair": rfencedlock.NewFair,
	"rfencedlock.WithEpoch": rfencedlock.WithEpoch, "rfencedlock.Hold.Token": (*rfencedlock.Hold).Token,
	"rfencedlock.Lock.BeginEpoch": (*rfencedlock.Lock).BeginEpoch, "rfencedlock.Lock.Do": (*rfencedlock.Lock).Do,
	"rfencedlock.Lock.Lock": (*rfencedlock.Lock).Lock, "rfencedlock.Lock.Resume": (*rfencedlock.Lock).Resume,
	"rfencedlock.Lock.Token": (*rfencedlock.Lock).Token, "rfencedlock.Lock.TryLock": (*rfencedlock.Lock).TryLock,

	"rreadwritelock.New":                     rreadwritelock.New,
	"rreadwritelock.WithoutWriterPreference": rreadwritelock.WithoutWriterPreference,
	"rreadwritelock.Lock.Name":               (*rreadwritelock.Lock).Name,
	"rreadwritelock.Lock.Read":               (*rreadwritelock.Lock).Read,
	"rreadwritelock.Lock.Write":              (*rreadwritelock.Lock).Write,

	"rsemaphore.New": rsemaphore.New, "rsemaphore.NewExpirable": rsemaphore.NewExpirable,
	"rsemaphore.WithStrictOrder": rsemaphore.WithStrictOrder, "rsemaphore.WithWait": rsemaphore.WithWait,
	"rsemaphore.WithLease": rsemaphore.WithLease, "rsemaphore.WithWatchdog": rsemaphore.WithWatchdog,
	"rsemaphore.WithMaxHold":             rsemaphore.WithMaxHold,
	"rsemaphore.Expirable.Name":          (*rsemaphore.Expirable).Name,
	"rsemaphore.Expirable.Internal":      (*rsemaphore.Expirable).Internal,
	"rsemaphore.Expirable.Acquire":       (*rsemaphore.Expirable).Acquire,
	"rsemaphore.Expirable.TryAcquire":    (*rsemaphore.Expirable).TryAcquire,
	"rsemaphore.Expirable.Do":            (*rsemaphore.Expirable).Do,
	"rsemaphore.Expirable.Release":       (*rsemaphore.Expirable).Release,
	"rsemaphore.Expirable.TrySetPermits": (*rsemaphore.Expirable).TrySetPermits,
	"rsemaphore.Expirable.SetPermits":    (*rsemaphore.Expirable).SetPermits,
	"rsemaphore.Expirable.AddPermits":    (*rsemaphore.Expirable).AddPermits,
	"rsemaphore.Expirable.Available":     (*rsemaphore.Expirable).Available,
	"rsemaphore.Expirable.Acquired":      (*rsemaphore.Expirable).Acquired,
	"rsemaphore.Expirable.Permits":       (*rsemaphore.Expirable).Permits,
	"rsemaphore.Expirable.Inspect":       (*rsemaphore.Expirable).Inspect,
	"rsemaphore.Hold.Name":               (*rsemaphore.Hold).Name,
	"rsemaphore.Hold.Internal":           (*rsemaphore.Hold).Internal,
	"rsemaphore.Hold.N":                  (*rsemaphore.Hold).N,
	"rsemaphore.Hold.ID":                 (*rsemaphore.Hold).ID,
	"rsemaphore.Hold.IDs":                (*rsemaphore.Hold).IDs,
	"rsemaphore.Hold.Err":                (*rsemaphore.Hold).Err,
	"rsemaphore.Hold.Remaining":          (*rsemaphore.Hold).Remaining,
	"rsemaphore.Hold.Context":            (*rsemaphore.Hold).Context,
	"rsemaphore.Hold.Release":            (*rsemaphore.Hold).Release,
	"rsemaphore.Hold.LetExpire":          (*rsemaphore.Hold).LetExpire,
	"rsemaphore.Semaphore.Name":          (*rsemaphore.Semaphore).Name,
	"rsemaphore.Semaphore.Acquire":       (*rsemaphore.Semaphore).Acquire,
	"rsemaphore.Semaphore.TryAcquire":    (*rsemaphore.Semaphore).TryAcquire,
	"rsemaphore.Semaphore.Release":       (*rsemaphore.Semaphore).Release,
	"rsemaphore.Semaphore.Add":           (*rsemaphore.Semaphore).Add,
	"rsemaphore.Semaphore.Drain":         (*rsemaphore.Semaphore).Drain,
	"rsemaphore.Semaphore.TrySet":        (*rsemaphore.Semaphore).TrySet,
	"rsemaphore.Semaphore.Available":     (*rsemaphore.Semaphore).Available,

	"rlatch.New": rlatch.New, "rlatch.Latch.Count": (*rlatch.Latch).Count, "rlatch.Latch.CountDown": (*rlatch.Latch).CountDown,
	"rlatch.Latch.Delete": (*rlatch.Latch).Delete, "rlatch.Latch.Name": (*rlatch.Latch).Name,
	"rlatch.Latch.TrySet": (*rlatch.Latch).TrySet, "rlatch.Latch.Wait": (*rlatch.Latch).Wait,

	"leader.Status.ServeHTTP": func(s *leader.Status) { s.ServeHTTP(httptest.NewRecorder(), nil) },
	"leader.Run":              leader.Run, "leader.Status.IsLeader": (*leader.Status).IsLeader,
	"redlatchui.New": newPage, "redlatchui.Page.Close": (*redlatchui.Page).Close, "redlatchui.Page.ServeHTTP": visit,
	"rmultilock.New": rmultilock.New, "rmultilock.Of": rmultilock.Of,
	"rmultilock.Lock.Do": (*rmultilock.Lock).Do, "rmultilock.Lock.Lock": (*rmultilock.Lock).Lock,
	"rmultilock.Lock.Names": (*rmultilock.Lock).Names, "rmultilock.Lock.TryLock": (*rmultilock.Lock).TryLock,
	"rmultilock.Hold.Context": (*rmultilock.Hold).Context, "rmultilock.Hold.Err": (*rmultilock.Hold).Err,
	"rmultilock.Hold.Names": (*rmultilock.Hold).Names, "rmultilock.Hold.Remaining": (*rmultilock.Hold).Remaining,
	"rmultilock.Hold.Token": (*rmultilock.Hold).Token, "rmultilock.Hold.Unlock": (*rmultilock.Hold).Unlock,

	"admin.Evict": admin.Evict, "admin.ForceEvict": admin.ForceEvict, "admin.Inspect": admin.Inspect,
	"admin.InspectPart": admin.InspectPart, "admin.Listeners": admin.Listeners,

	"codec.LatchKey":    codec.LatchKey,
	"codec.Slot":        codec.Slot, //nolint:staticcheck // it is there, so it is tried
	"codec.LockChannel": codec.LockChannel, "codec.NewOwner": codec.NewOwner,
	"codec.Owner.Client":      codec.Owner.Client,
	"codec.Owner.IsZero":      codec.Owner.IsZero,
	"codec.Owner.MarshalText": codec.Owner.MarshalText, "codec.Owner.N": codec.Owner.N,
	"codec.Owner.IsRedlatch": codec.Owner.IsRedlatch, "codec.Owner.String": codec.Owner.String,
	"codec.Owner.UnmarshalText": (*codec.Owner).UnmarshalText, "codec.OwnerChannel": codec.OwnerChannel,
	"codec.ParseOwner": codec.ParseOwner,
	"codec.QueueKey":   codec.QueueKey, "codec.TimeoutKey": codec.TimeoutKey, "codec.TokenKey": codec.TokenKey,
	"codec.HoldKey": codec.HoldKey, "codec.ReadWriteChannel": codec.ReadWriteChannel,
	"codec.SemaphoreChannel": codec.SemaphoreChannel, "codec.PermitsKey": codec.PermitsKey,
	"codec.CountDownChannel": codec.CountDownChannel, "codec.WriterField": codec.WriterField, "codec.WriterOf": codec.WriterOf,

	"reply.Acquired": reply.Acquired, "reply.Beat.Free": reply.Beat.Free, "reply.Count": reply.Count,
	"reply.DecodeBeat": reply.DecodeBeat, "reply.DecodeEvicted": reply.DecodeEvicted, "reply.Exists": reply.Exists, "reply.Foreign": reply.Foreign,
	"reply.Forced": reply.Forced, "reply.Holds": reply.Holds, "reply.Inspected": reply.Inspected, "reply.InspectedReadWrite": reply.InspectedReadWrite,
	"reply.Millis": reply.Millis, "reply.Nudged": reply.Nudged,
	"reply.Reentered": reply.Reentered, "reply.Refused": reply.Refused,
	"reply.ReleaseOutcome.String": reply.ReleaseOutcome.String, "reply.Released": reply.Released,
	"reply.TakenPermits": reply.TakenPermits, "reply.ReturnedPermits": reply.ReturnedPermits,
	"reply.CountedPermits": reply.CountedPermits, "reply.Number": reply.Number, "reply.InspectedPermits": reply.InspectedPermits,
	"reply.RenewedAt": reply.RenewedAt, "reply.Token": reply.Token,

	"pubsub.New": pubsub.New, "pubsub.Subscriber.Close": (*pubsub.Subscriber).Close,
	"pubsub.Subscriber.Listen": (*pubsub.Subscriber).Listen, "pubsub.Subscriber.Reconnect": (*pubsub.Subscriber).Reconnect,
	"pubsub.Subscriber.Stats": (*pubsub.Subscriber).Stats, "pubsub.Subscriber.Subscribe": (*pubsub.Subscriber).Subscribe,

	"transport.HashSlot": transport.HashSlot, "transport.IsCode": transport.IsCode, "transport.NewScript": transport.NewScript,
	"transport.Call.Abandon": (*transport.Call).Abandon, "transport.Call.Abandoned": (*transport.Call).Abandoned,
	"transport.Call.Claim": (*transport.Call).Claim, "transport.Call.Conn": (*transport.Call).Conn,
	"transport.Call.Key": (*transport.Call).Key, "transport.Call.Name": (*transport.Call).Name,
	"transport.Call.Withdraw": (*transport.Call).Withdraw,
	"transport.Call.Reset":    (*transport.Call).Reset, "transport.Script.Name": (*transport.Script).Name,
	"transport.Script.SHA": (*transport.Script).SHA, "transport.Script.Text": (*transport.Script).Text,
	"transport.ServerError.Code": (*transport.ServerError).Code, "transport.ServerError.Error": (*transport.ServerError).Error,
	"transport.ServerError.HasCode":     (*transport.ServerError).HasCode,
	"transport.ServerError.IsFull":      (*transport.ServerError).IsFull,
	"transport.Sharding.PublishCommand": transport.Sharding.PublishCommand,
	"transport.Sharding.String":         transport.Sharding.String,

	"embedded.WithInProcess": embedded.WithInProcess, "embedded.Server.Addr": (*embedded.Server).Addr,
	"embedded.Server.Close": (*embedded.Server).Close, "embedded.Server.Dial": (*embedded.Server).Dial,
	"embedded.Server.DialNet": (*embedded.Server).DialNet, "embedded.Server.DropConnections": (*embedded.Server).DropConnections,
	"embedded.Server.DropSubscribers": (*embedded.Server).DropSubscribers, "embedded.Server.FailWith": (*embedded.Server).FailWith,
	"embedded.Server.FastForward": (*embedded.Server).FastForward, "embedded.Server.Heal": (*embedded.Server).Heal,
	"embedded.Server.LoseReplies": (*embedded.Server).LoseReplies, "embedded.Server.SetTime": (*embedded.Server).SetTime,
	"embedded.Server.URL": (*embedded.Server).URL,
}

// elsewhere are those that need a real network, and the tests that try them.
var elsewhere = map[string]string{
	"redlatch.Open":         "TestAddressesThatMakeNoSenseAreRefusedInOneShortLine",
	"redlatch.NewCluster":   "TestDialFunctionsThatAreOfNoUseAreErrors",
	"redlatch.NewSentinel":  "TestDialFunctionsThatAreOfNoUseAreErrors",
	"redlatch.AskSentinels": "TestDialFunctionsThatAreOfNoUseAreErrors",
	"redlatch.LimitReplies": "TestLimitRepliesEndsAConnectionThatAnnouncesTooMuch",
	"redlatch.NewConn":      "TestLimitRepliesEndsAConnectionThatAnnouncesTooMuch",
	"embedded.Start":        "TestAddressesThatCannotBeListenedOnAreErrors",
	"embedded.WithAddr":     "TestAddressesThatCannotBeListenedOnAreErrors",
}

func TestExportedFunctionsSurviveBadInput(t *testing.T) {
	t.Parallel()
	also := receivers()
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newFunction(t, name, f, also).try(t)
		})
	}
}

func TestEveryExportedFunctionIsTriedWithBadInput(t *testing.T) {
	t.Parallel()
	names := allExported(t)
	require.Greater(t, len(names), 100, "the functions were not found: the check itself is broken")
	for name := range names {
		_, here := functions[name]
		_, there := elsewhere[name]
		assert.True(t, here || there, "%s is tried with no bad input: add a row", name)
		assert.False(t, here && there, name)
	}
	for name := range functions {
		assert.True(t, names[name], "%s does not exist any more", name)
	}
	tests, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var source strings.Builder
	for _, file := range tests {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		source.Write(text)
	}
	for name, test := range elsewhere {
		assert.True(t, names[name], "%s does not exist any more", name)
		assert.Contains(t, source.String(), "func "+test+"(", name)
	}
}

// allExported returns the exported functions, and methods of exported types, of packages.
func allExported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pkg := range packages {
		maps.Copy(names, exported.Names(t, filepath.Join("..", "..", pkg)))
	}
	return names
}

func TestDialFunctionsThatAreOfNoUseAreErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	nothing := func(context.Context, string) (redis.Conn, error) { return nil, nil } //nolint:nilnil // the mistake
	fails := func(context.Context, string) (redis.Conn, error) { return nil, broken }
	here := func(context.Context) (string, error) { return "127.0.0.1:1", nil }
	seeds := []string{"127.0.0.1:1"}
	require.Panics(t, func() { _, _ = redlatch.NewCluster(nil, seeds, nothing) }) //nolint:staticcheck // the mistake
	for _, err := range []error{
		second(redlatch.NewCluster(t.Context(), nil, nothing)),
		second(redlatch.NewCluster(t.Context(), seeds, nil)),
		second(redlatch.NewCluster(t.Context(), seeds, fails, redlatch.WithShardedPubSub(9))),
		second(redlatch.NewSentinel(nil, nothing)), second(redlatch.NewSentinel(here, nil)),
	} {
		require.ErrorContains(t, err, "redlatch: ")
	}
	for want, dial := range map[string]func(context.Context, string) (redis.Conn, error){"broken": fails, "no connection": nothing} {
		_, err := redlatch.NewCluster(t.Context(), seeds, dial)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.ErrorContains(t, err, want)
		_, err = redlatch.AskSentinels("m", seeds, dial)(t.Context())
		require.ErrorContains(t, err, want)
		for _, name := range []string{"", "named"} {
			t.Run(want+" "+name, func(t *testing.T) {
				t.Parallel()
				opts := []redlatch.Option{redlatch.WithCommandTimeout(time.Second), redlatch.WithClientName(name)}
				client, err := redlatch.NewSentinel(here, dial, opts...)
				require.ErrorContains(t, notSent(t, client, err), want)
				client, err = redlatch.New(func(ctx context.Context) (redis.Conn, error) { return dial(ctx, "") }, opts...)
				_ = notSent(t, client, err)
			})
		}
	}
	_, err := redlatch.AskSentinels("m", nil, fails)(t.Context())
	require.ErrorContains(t, err, "no Sentinel is known")
	_, err = redlatch.AskSentinels("m", seeds, nil)(t.Context())
	require.ErrorContains(t, err, "needs a dial function")
}

// notSent returns the error of a client that was made, and reaches nothing.
func notSent(t *testing.T, client *redlatch.Client, err error) error {
	t.Helper()
	require.NoError(t, err)
	_, err = rlock.New(client, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.NoError(t, client.Close())
	return err
}

func second(_ *redlatch.Client, err error) error { return err }

// TestLimitRepliesEndsAConnectionThatAnnouncesTooMuch has a server announce a text of an
// exabyte. NewConn limits replies, too.
func TestLimitRepliesEndsAConnectionThatAnnouncesTooMuch(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer server.Close() //nolint:errcheck // the test is over
	go func() { _, _ = server.Write([]byte("$1152921504606846976\r\n")) }()
	conn := redlatch.LimitReplies(client)
	defer conn.Close() //nolint:errcheck // broken
	_, err := io.ReadAll(conn)
	require.ErrorContains(t, err, "more than")

	client, server = net.Pipe()
	defer server.Close() //nolint:errcheck // the test is over
	go func() { _, _ = server.Write([]byte("$1152921504606846976\r\n")) }()
	over := redlatch.NewConn(client, time.Second)
	defer over.Close() //nolint:errcheck // broken
	_, err = over.Receive()
	require.ErrorContains(t, err, "more than")
}
