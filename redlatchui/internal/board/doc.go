// Package board keeps what a page shows of a server's locks up to date, for any number of
// viewers: the server gets the commands of one.
//
//	viewers ─▶ Board.Locks ─▶ feed: one scan after the other ─▶ Locks, sorted by trouble
//	viewers ─▶ Board.Numbers ─▶ the same of numbers, which may be semaphores or latches
//	viewers ─▶ Board.Lock  ─▶ feed: one look after the other ─▶ Lock, with its last events
//	viewers ─▶ Board.Server ─▶ feed: an examination every 15 s ─▶ Exam
//
// Locks also have what each client holds and waits for, and the circles of waits: these come from
// the same scan.
//
// A feed runs while viewers ask for its value and for a short time after that; without viewers
// nothing is sent. Scans cost the server what those of redlatch list do: SCAN of 250 keys,
// short commands, and pauses of four times a scan. What a feed has published is not changed
// any more, so that viewers read it without a lock.
//
// A board changes nothing on the server. Its source says where a lock can be repaired.
package board
