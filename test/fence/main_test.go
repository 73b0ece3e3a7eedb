package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon is far longer than any wait.
const soon = 2 * time.Minute

// database is a database that contains the table of a guard.
type database struct {
	*sql.DB
	fences fence.Table
}

// eachDatabase runs a test on each installed database, with empty tables.
func eachDatabase(t *testing.T, test func(t *testing.T, db database)) {
	t.Helper()
	for name, start := range map[string]func(t *testing.T) database{
		"sqlite": sqlite, "postgresql": postgreSQL, "mariadb": mariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			exec := func(statement string) {
				_, err := db.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			exec(db.fences.Schema())
			exec("CREATE TABLE orders (id VARCHAR(190) PRIMARY KEY, state VARCHAR(190) NOT NULL)")
			exec("INSERT INTO orders VALUES ('42', 'paid')")
			test(t, db)
		})
	}
}

func open(t *testing.T, driver, source string, fences fence.Table) database {
	t.Helper()
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, soon, 50*time.Millisecond, "server is not ready")
	return database{db, fences}
}

func sqlite(t *testing.T) database {
	t.Helper()
	file := filepath.Join(t.TempDir(), "orders.db")
	return open(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_txlock=immediate", fence.Table{})
}

func postgreSQL(t *testing.T) database {
	t.Helper()
	initdb := program(t, "initdb", "REDLATCH_POSTGRES", "postgresql", "/usr/lib/postgresql/*/bin/initdb")
	dir := folder(t)
	data := filepath.Join(dir, "data")
	init := asUser(exec.Command(initdb, "-D", data, "-A", "trust", "-U", "redlatch", "--no-sync"))
	out, err := init.CombinedOutput()
	require.NoError(t, err, "%s", out)
	port := strconv.Itoa(redistest.UnusedPort(t))
	run(t, filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1", "-F")
	return open(t, "pgx", "postgres://redlatch@127.0.0.1:"+port+"/postgres?sslmode=disable", fence.Table{Dollars: true})
}

func mariaDB(t *testing.T) database {
	t.Helper()
	server := program(t, "mariadbd", "REDLATCH_MARIADB", "mariadb-server", "/usr/sbin/mariadbd")
	dir := folder(t)
	share := filepath.Join(filepath.Dir(filepath.Dir(server)), "share", "mysql")
	data, port := filepath.Join(dir, "data"), strconv.Itoa(redistest.UnusedPort(t))
	require.NoError(t, os.Mkdir(data, 0o700))
	give(t, data)
	// In the default --tmpdir, servers that start delete the temporary tables of others.
	common := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + dir, "--lc-messages-dir=" + share, "--innodb-flush-log-at-trx-commit=0"}
	// This does the parts of mariadb-install-db that the test needs.
	bootstrap := asUser(exec.Command(server, append(common, "--bootstrap")...))
	bootstrap.Stdin = bootstrapSQL(t, share)
	out, err := bootstrap.CombinedOutput()
	require.NoError(t, err, "%s", out)
	run(t, server, append(common, "--port="+port, "--bind-address=127.0.0.1", "--socket="+filepath.Join(dir, "s"),
		"--pid-file="+filepath.Join(dir, "pid"), "--skip-grant-tables", "--skip-networking=0")...)
	return open(t, "mysql", "root@tcp(127.0.0.1:"+port+")/test", fence.Table{})
}

// program returns the path of a program. If it is not installed, the test is skipped with a hint.
func program(t *testing.T, name, variable, pkg, pattern string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	if path, err := exec.LookPath(name); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			return resolved
		}
	}
	if found, _ := filepath.Glob(pattern); len(found) > 0 {
		return found[len(found)-1]
	}
	if os.Getenv("CI") == "true" {
		require.FailNow(t, "no "+name, "apt-get install %s", pkg)
	}
	t.Skipf("%s not found: apt-get install %s, or set %s to its path", name, pkg, variable)
	return ""
}

// nobody is the ID of the user that runs servers that refuse to run as root.
const nobody = 65534

func asUser(c *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return c
}

// folder creates a folder that is owned by the server's user. Its path is short enough for sockets.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fence") //nolint:usetesting // sockets need a short path, which another user can access
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	give(t, dir)
	return dir
}

func give(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(path, nobody, nobody))
	}
}

// run starts a server that is stopped when the test ends.
func run(t *testing.T, path string, args ...string) {
	t.Helper()
	c := asUser(exec.Command(path, args...))
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		require.NoError(t, c.Process.Kill())
		_ = c.Wait() // it was killed
	})
}

// connect opens a client that is closed when the test ends.
func connect(t *testing.T, url string) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

// bootstrapSQL creates the system tables of a MariaDB server and a test database.
func bootstrapSQL(t *testing.T, share string) io.Reader {
	t.Helper()
	var all strings.Builder
	all.WriteString("CREATE DATABASE mysql;\nCREATE DATABASE test;\nUSE mysql;\n")
	for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql"} {
		text, err := os.ReadFile(filepath.Join(share, name))
		require.NoError(t, err)
		all.Write(text)
	}
	return strings.NewReader(all.String())
}

// ship writes an order's state under a token.
func (db database) ship(ctx context.Context, state string, token int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := db.fences.Check(ctx, tx, "orders:42", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = '"+state+"' WHERE id = '42'"); err != nil {
		return err
	}
	return tx.Commit()
}

func (db database) state(t *testing.T) (state string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT state FROM orders WHERE id = '42'").Scan(&state))
	return state
}

// U12: a paused holder resumes after another holder has written, and is rejected.
func TestU12DatabaseRejectsWriteOfPausedHolder(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		s := redistest.Shared(t)
		name := redistest.Key(t)
		a, err := rfencedlock.New(connect(t, s.URL()), name).Lock(within(t))
		require.NoError(t, err)
		require.NoError(t, db.ship(within(t), "packed by a", a.Token()))

		// A loses the lock without noticing, and B acquires it.
		next := rfencedlock.New(connect(t, s.URL()), name)
		_, err = next.ForceUnlock(within(t))
		require.NoError(t, err)
		b, err := next.Lock(within(t))
		require.NoError(t, err)
		require.NoError(t, db.ship(within(t), "shipped by b", b.Token()))

		err = db.ship(within(t), "shipped by a", a.Token())
		require.ErrorIs(t, err, fence.ErrLate)
		var late *fence.LateError
		require.ErrorAs(t, err, &late)
		require.Equal(t, fence.LateError{Resource: "orders:42", Token: a.Token(), Highest: b.Token()}, *late)
		require.Equal(t, "shipped by b", db.state(t))
		require.NoError(t, db.ship(within(t), "delivered by b", b.Token()), "a holder may write more than once")
		require.Equal(t, "delivered by b", db.state(t))
		require.NoError(t, b.Unlock())
	})
}

// In the critical case, B writes after A has been accepted and before A commits.
func TestHigherTokenWaitsForAcceptedTransaction(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		for _, token := range []int64{1, 1} { // the first write of a resource, and a later one
			tx, err := db.BeginTx(within(t), nil)
			require.NoError(t, err)
			require.NoError(t, db.fences.Check(within(t), tx, "orders:42", token))
			_, err = tx.ExecContext(within(t), "UPDATE orders SET state = 'a' WHERE id = '42'")
			require.NoError(t, err)
			higher := make(chan error, 1)
			go func() { higher <- db.ship(within(t), "b", token+1) }()
			require.NoError(t, tx.Commit())
			if err := <-higher; err != nil {
				require.NotErrorIs(t, err, fence.ErrLate)
				require.NoError(t, db.ship(within(t), "b", token+1), "concurrent first writes")
			}
			require.Equal(t, "b", db.state(t))
			_, err = db.ExecContext(within(t), "UPDATE fences SET token = 1")
			require.NoError(t, err)
		}
	})
}

func TestWriteWithoutTokenIsRejected(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		for _, none := range []int64{0, -1} {
			require.ErrorIs(t, db.ship(within(t), "none", none), fence.ErrNoToken)
		}
		require.Equal(t, "paid", db.state(t))
	})
}

// If many writers use tokens in any order, the accepted tokens increase, and the highest one is the last.
func TestAcceptedWritesFollowTokenOrder(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db database) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), "CREATE TABLE history (n BIGINT, token BIGINT)")
		require.NoError(t, err)
		const writers = 40
		var all sync.WaitGroup
		failed := make(chan error, writers)
		for _, i := range rand.Perm(writers) {
			all.Go(func() { failed <- db.append(within(t), int64(i+1)) })
		}
		all.Wait()
		accepted := 0
		for range writers {
			if err := <-failed; err == nil {
				accepted++
			} else {
				require.ErrorIs(t, err, fence.ErrLate)
			}
		}
		rows, err := db.QueryContext(t.Context(), "SELECT token FROM history ORDER BY n")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		var last int64
		for rows.Next() {
			var token int64
			require.NoError(t, rows.Scan(&token))
			require.Greater(t, token, last)
			last, accepted = token, accepted-1
		}
		require.NoError(t, rows.Err())
		require.Zero(t, accepted)
		require.EqualValues(t, writers, last, "the highest is always accepted")
	})
}

// append records a token. It retries after errors other than a rejection. Without a pause before the retry, concurrent
// first writes would deadlock again on MariaDB.
func (db database) append(ctx context.Context, token int64) error {
	for {
		err := db.tryAppend(ctx, token)
		if err == nil || errors.Is(err, fence.ErrLate) || ctx.Err() != nil {
			return err
		}
		<-time.After(rand.N(100 * time.Millisecond))
	}
}

func (db database) tryAppend(ctx context.Context, token int64) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := db.fences.Check(ctx, tx, "history", token); err != nil {
		return err
	}
	next := "INSERT INTO history SELECT COUNT(*) + 1, ? FROM history"
	if db.fences.Dollars {
		next = "INSERT INTO history SELECT COUNT(*) + 1, CAST($1 AS BIGINT) FROM history"
	}
	if _, err := tx.ExecContext(ctx, next, token); err != nil {
		return err
	}
	return tx.Commit()
}
