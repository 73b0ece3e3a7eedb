package fence_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
)

func TestMain(m *testing.M) { redistest.Main(m) }

// soon is far more than anything takes that is waited for.
const soon = 30 * time.Second

// database is a database that a guard's table is in.
type database struct {
	*sql.DB
	fences fence.Table
}

// eachDatabase runs a test on each database there is, with empty tables.
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
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, soon, 50*time.Millisecond, "the server does not answer")
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
	common := []string{"--no-defaults", "--datadir=" + data, "--lc-messages-dir=" + share, "--innodb-flush-log-at-trx-commit=0"}
	// What mariadb-install-db does, as far as a test needs it.
	bootstrap := asUser(exec.Command(server, append(common, "--bootstrap")...))
	bootstrap.Stdin = bootstrapSQL(t, share)
	out, err := bootstrap.CombinedOutput()
	require.NoError(t, err, "%s", out)
	run(t, server, append(common, "--port="+port, "--bind-address=127.0.0.1", "--socket="+filepath.Join(dir, "s"),
		"--pid-file="+filepath.Join(dir, "pid"), "--skip-grant-tables", "--skip-networking=0")...)
	return open(t, "mysql", "root@tcp(127.0.0.1:"+port+")/test", fence.Table{})
}

// program finds a program, or skips the test and says how to get it.
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
		require.FailNow(t, "there is no "+name, "apt-get install %s", pkg)
	}
	t.Skipf("there is no %s: apt-get install %s, or say in %s where it is", name, pkg, variable)
	return ""
}

// nobody is the user that servers run as which refuse to be root's.
const nobody = 65534

func asUser(c *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return c
}

// folder returns a folder with a short name, as sockets want, which is the server's.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fence") //nolint:usetesting // sockets want a short name, and another user must reach it
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

// run starts a server that ends with the test.
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

// connect opens a client that is closed with the test.
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
