package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Table is a guard for what a SQL database has: a table with the highest token of each
// resource. It is tried on SQLite, PostgreSQL and MariaDB; its statements are plain SQL. It
// keeps no state and is safe for concurrent use. It makes no table: [Table.Schema] says what
// it needs.
type Table struct {
	// Name is the table's name, put into statements as it is: never a text of users'.
	// Default: fences.
	Name string
	// Dollars is true for databases whose placeholders are $1, $2 … and not question marks,
	// as those of PostgreSQL.
	Dollars bool
}

// Schema returns the statement that makes the table. Resources have at most 190 characters,
// which every database can index.
func (t Table) Schema() string {
	return "CREATE TABLE " + t.name() + " (resource VARCHAR(190) PRIMARY KEY, token BIGINT NOT NULL, writes BIGINT NOT NULL)"
}

// Check makes sure, within a transaction, that no higher token has been seen for the resource,
// and remembers this one. Write in the same transaction, after Check: until it ends, the row
// is locked, so a holder with a higher token waits for it, and one with a lower token is
// refused. On an error, roll back.
//
// It returns a [*LateError], ErrNoToken, or the database's error: the first write of a
// resource fails with a duplicate key where two holders are first at the same time, and a
// transaction that is serialised by the database with that error; both may be tried again. It
// runs one statement, two when the token is late, three the first time.
func (t Table) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	if err := check(token); err != nil {
		return err
	}
	// The count of writes makes the update change the row in any case: MySQL counts the
	// rows that changed, not those that matched.
	update := t.statement("UPDATE %s SET token = ?, writes = writes + 1 WHERE resource = ? AND token <= ?")
	done, err := tx.ExecContext(ctx, update, token, resource, token)
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	n, err := done.RowsAffected()
	switch {
	case err != nil:
		return fmt.Errorf("fence: %w", err)
	case n > 0:
		return nil
	}
	var highest int64
	err = tx.QueryRowContext(ctx, t.statement("SELECT token FROM %s WHERE resource = ?"), resource).Scan(&highest)
	switch {
	case err == nil:
		return &LateError{Resource: resource, Token: token, Highest: highest}
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("fence: %w", err)
	}
	if _, err = tx.ExecContext(ctx, t.statement("INSERT INTO %s (resource, token, writes) VALUES (?, ?, 1)"), resource, token); err != nil {
		return fmt.Errorf("fence: the first write of %q: %w", resource, err)
	}
	return nil
}

func (t Table) name() string {
	if t.Name == "" {
		return "fences"
	}
	return t.Name
}

// statement puts the table's name and the database's placeholders into a statement.
func (t Table) statement(text string) string {
	text = fmt.Sprintf(text, t.name())
	if !t.Dollars {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}
