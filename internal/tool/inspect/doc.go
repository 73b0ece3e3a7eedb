// Package inspect reads one lock and what is known of it: its holders and queue, which
// clients those are, whether its lease is renewed, and why a key is not a lock.
//
//	Glance ─▶ is it a lock? ─▶ Lock, or TakeSnapshot ─▶ ShapeOf, HolderOf, ClientOf
//	                                     └─ several ──▶ RenewedBy
//
// It writes nothing, neither to the server nor to a terminal, so that commands and other
// programs can show what it finds as they like. Its types have the JSON that commands
// print.
package inspect
