// Package fence has checks for the resources that a lock protects: they refuse a write with a
// fencing token below the highest that they have seen. Package rfencedlock makes such tokens;
// any number that only grows from one holder to the next will do.
//
// A check protects only when it and the write are one step for the resource. Each guard says
// how it makes them one:
//
//	resource         guard    check and write are one step, because
//	SQL database     Table    both are in one transaction, and the check locks its row
//	Redis            Redis    both are in one script
//	HTTP server      Handler  requests with lower tokens end before one with a higher begins
//
// A refused write gives [ErrLate]. It is not tried again with the same token: another holder
// has the lock, or has had it since. The same token is accepted as often as it comes: a
// holder may write more than once.
//
// Nothing here talks to Redis but what Redis.Eval is, and no package of other makers is
// imported.
package fence
