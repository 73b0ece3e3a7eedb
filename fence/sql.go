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
// transaction that is serialised by the database with that error; both may be tried again,
// after a random pause: on MySQL and MariaDB many first writes at once deadlock, and those that
// are repeated at once do so again. It runs one statement, two to four when the token is late
// or the resource new.
func (t Table) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	if err := check(token); err != nil {
		return err
	}
	for again := false; ; again = true {
		accepted, err := t.raise(ctx, tx, resource, token)
		if accepted || err != nil {
			return err
		}
		var highest int64
		err = tx.QueryRowContext(ctx, t.statement("SELECT token FROM %s WHERE resource = ?"), resource).Scan(&highest)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return t.first(ctx, tx, resource, token)
		case err != nil:
			return fmt.Errorf("fence: %w", err)
		case highest <= token && !again:
			// The row was made between the two statements. Only once: a transaction that
			// reads a snapshot may go on to see a lower token than there is.
			continue
		}
		return &LateError{Resource: resource, Token: token, Highest: highest}
	}
}

// raise remembers the token and locks the row, unless a higher one has been seen or there is
// no row yet.
func (t Table) raise(ctx context.Context, tx *sql.Tx, resource string, token int64) (bool, error) {
	// The count of writes makes the update change the row in any case: MySQL counts the
	// rows that changed, not those that matched.
	update := t.statement("UPDATE %s SET token = ?, writes = writes + 1 WHERE resource = ? AND token <= ?")
	done, err := tx.ExecContext(ctx, update, token, resource, token)
	if err != nil {
		return false, fmt.Errorf("fence: %w", err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("fence: %w", err)
	}
	return n > 0, nil
}

// first makes the row of a resource.
func (t Table) first(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	insert := t.statement("INSERT INTO %s (resource, token, writes) VALUES (?, ?, 1)")
	if _, err := tx.ExecContext(ctx, insert, resource, token); err != nil {
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
