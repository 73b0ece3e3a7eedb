package badinput_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"net"
	"net/http/httptest"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/leader"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// module is the import path of the root package.
const module = "github.com/redlatch/redlatch"

// packages are the folders of the packages that users import, and of the decoder of replies.
var packages = []string{".", "rlock", "rfairlock", "rfencedlock", "rreadwritelock", "rlatch", "rmultilock", "rsemaphore", "leader", "admin", "codec", "pubsub", "transport", "embedded", "redlatchui", "internal/reply"}

// functions are the exported functions. Reflection finds the methods.
var functions = []any{
	redlatch.New, redlatch.NewWithTransport, redlatch.PrefixMapper,
	redlatch.WithClientName, redlatch.WithCommandTimeout, redlatch.WithCredentials,
	redlatch.WithDeadWaiterGrace, redlatch.WithDialTimeout, redlatch.WithFairWaitTimeout, redlatch.WithLogger,
	redlatch.WithLabel, redlatch.WithLazyConnect, redlatch.WithLossMargin, redlatch.WithMaxWaiters, redlatch.WithNameMapper,
	redlatch.WithObserver, redlatch.WithPollCap, redlatch.WithReplicaDialer, redlatch.WithReplicaSync,
	redlatch.WithShardedPubSub, redlatch.WithServerTime, redlatch.WithTLSConfig, redlatch.WithWatchdogTimeout,
	redlatch.ErrorType,

	rlock.New, rlock.WithLease, rlock.WithMaxHold, rlock.WithOwner, rlock.WithPolling, rlock.WithWait, rlock.WithWatchdog,
	rfairlock.New, rfencedlock.New, rfencedlock.NewFair, rfencedlock.WithEpoch, rreadwritelock.New, rreadwritelock.WithoutWriterPreference,
	rsemaphore.New, rsemaphore.NewExpirable,
	rlatch.New, leader.Run, rmultilock.New, rmultilock.Of,
	admin.Evict, admin.ForceEvict, admin.Inspect, admin.InspectPart,

	codec.LockChannel, codec.NewOwner, codec.ParseOwner, codec.QueueKey, codec.TimeoutKey,

	reply.Acquired, reply.Count, reply.DecodeBeat, reply.DecodeEvicted, reply.Exists, reply.Foreign, reply.Forced, reply.Holds,
	reply.Inspected, reply.InspectedReadWrite, reply.Millis, reply.Nudged, reply.Reentered, reply.Refused, reply.Released,
	reply.TakenPermits, reply.ReturnedPermits, reply.AvailablePermits, reply.Number, reply.InspectedPermits, reply.RenewedAt, reply.Token,

	pubsub.New, transport.HashSlot, transport.IsCode, transport.NewScript, embedded.WithInProcess,
}

// tried returns the functions and methods that are tried, by name.
func tried(also map[reflect.Type][]value) map[string]any {
	all := map[string]any{
		"redlatchui.New": newPage, "redlatchui.Page.ServeHTTP": visit,
		"leader.Status.ServeHTTP": func(s *leader.Status) { s.ServeHTTP(httptest.NewRecorder(), nil) },
	}
	for _, f := range functions {
		all[path.Base(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name())] = f
	}
	for _, receivers := range []map[reflect.Type][]value{values, also} {
		for receiver := range receivers {
			of := receiver
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if of.Kind() == reflect.Interface || !strings.HasPrefix(of.PkgPath(), module) {
				continue
			}
			for i := range receiver.NumMethod() {
				m := receiver.Method(i)
				name := path.Base(of.PkgPath()) + "." + of.Name() + "." + m.Name
				if all[name] == nil {
					all[name] = m.Func.Interface()
				}
			}
		}
	}
	return all
}

// elsewhere lists the functions that need a real network. They are called by the tests of addresses, dial functions and
// limits.
var elsewhere = []string{
	"redlatch.Open", "redlatch.NewCluster", "redlatch.NewSentinel", "redlatch.AskSentinels",
	"redlatch.NewConn", "embedded.Start", "embedded.WithAddr",
}

func TestExportedFunctionsSurviveBadInput(t *testing.T) {
	t.Parallel()
	also := receivers()
	for name, f := range tried(also) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newFunction(t, name, f, also).try(t)
		})
	}
}

func TestBadInputCoversExportedFunctions(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, pkg := range packages {
		maps.Copy(names, exported(t, filepath.Join("..", "..", pkg)))
	}
	require.Greater(t, len(names), 100, "the functions were not found: the check itself is broken")
	here := tried(receivers())
	for name := range names {
		assert.NotEqual(t, here[name] != nil, slices.Contains(elsewhere, name),
			"%s: add the function to functions or elsewhere, or a receiver of the method", name)
	}
}

// exported returns the exported functions, and the methods of exported types, of the package in dir. They have the form
// package.Function or package.Type.Method.
func exported(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			if !isFunc || !f.Name.IsExported() {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				receiver := strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
				if !ast.IsExported(receiver) {
					continue
				}
				name = receiver + "." + name
			}
			names[file.Name.Name+"."+name] = true
		}
	}
	require.NotEmpty(t, names, "nothing is exported in %s: the check itself is broken", dir)
	return names
}

func TestInvalidDialFunctionReturnsError(t *testing.T) {
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
				synctest.Test(t, func(t *testing.T) {
					opts := []redlatch.Option{redlatch.WithCommandTimeout(time.Second), redlatch.WithClientName(name)}
					client, err := redlatch.NewSentinel(here, dial, opts...)
					require.ErrorContains(t, notSent(t, client, err), want)
					client, err = redlatch.New(func(ctx context.Context) (redis.Conn, error) { return dial(ctx, "") }, opts...)
					_ = notSent(t, client, err)
				})
			})
		}
	}
	_, err := redlatch.AskSentinels("m", nil, fails)(t.Context())
	require.ErrorContains(t, err, "no Sentinel is known")
	_, err = redlatch.AskSentinels("m", seeds, nil)(t.Context())
	require.ErrorContains(t, err, "needs a dial function")
}

// notSent returns the error of a client without a server.
func notSent(t *testing.T, client *redlatch.Client, err error) error {
	t.Helper()
	require.NoError(t, err)
	_, err = rlock.New(client, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.NoError(t, client.Close())
	return err
}

func second(_ *redlatch.Client, err error) error { return err }

// The server announces a string of one exabyte.
func TestNewConnClosesOnOversizedReply(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer server.Close() //nolint:errcheck // the test is over
	go func() { _, _ = server.Write([]byte("$1152921504606846976\r\n")) }()
	over := redlatch.NewConn(client, time.Second)
	defer over.Close() //nolint:errcheck // broken
	_, err := over.Receive()
	require.ErrorContains(t, err, "more than")
}
