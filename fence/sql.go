package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Table guards data in a SQL database with a table that contains the highest token of each
// resource; see [Table.Schema]. It is tested on SQLite, PostgreSQL and MariaDB. It is stateless and
// safe for concurrent use.
type Table struct {
	// Name is the table's name. It is not escaped: never take it from user input. The default is
	// fences.
	Name string
	// Dollars selects the placeholders $1, $2 …, which PostgreSQL requires, instead of question marks.
	Dollars bool
}

// Schema returns the CREATE TABLE statement. Resources have at most 190 characters, which every
// database can index.
func (t Table) Schema() string {
	return "CREATE TABLE " + t.name() + " (resource VARCHAR(190) PRIMARY KEY, token BIGINT NOT NULL, writes BIGINT NOT NULL)"
}

// Check verifies in a transaction that no higher token has been seen for the resource, and stores token.
// Write in the same transaction, after Check: the row stays locked until the transaction ends, so holders
// with higher tokens wait and lower tokens are rejected. It runs one statement, or two to four if the
// token is late or the resource is new.
//
// If Check returns a [*LateError], ErrNoToken, or the database's error, roll back. If two transactions
// concurrently write a resource for the first time, one fails with a duplicate key or, on MySQL and
// MariaDB, with a deadlock; serializable transactions fail with a serialization error. Retry these after
// a random pause.
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
			// The row was inserted between the two statements. Retry only once: a transaction
			// that reads a snapshot may keep seeing the lower token.
			continue
		}
		return &LateError{Resource: resource, Token: token, Highest: highest}
	}
}

func (t Table) raise(ctx context.Context, tx *sql.Tx, resource string, token int64) (bool, error) {
	// MySQL counts changed rows, not matched ones. Incrementing the write count changes the row
	// even if the token stays the same.
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

func (t Table) first(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	insert := t.statement("INSERT INTO %s (resource, token, writes) VALUES (?, ?, 1)")
	if _, err := tx.ExecContext(ctx, insert, resource, token); err != nil {
		return fmt.Errorf("fence: first write of %q: %w", resource, err)
	}
	return nil
}

func (t Table) name() string {
	if t.Name == "" {
		return "fences"
	}
	return t.Name
}

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
