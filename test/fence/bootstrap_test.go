package fence_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bootstrapSQL is what makes the system tables of a MariaDB server, and a database to test in.
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
