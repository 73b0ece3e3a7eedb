// Package label keeps a client's label on the server: a text by which people
// recognise the program that a client's UUID stands for.
//
// A label is a key of its own, outside of Redisson's, with a time to live: one for
// each client, however many locks that has. It is written by a command of its own
// and never by a lock's script, because it lives in another slot of a cluster, and
// because no lock may fail for it. No decision depends on it.
//
//	          Start                Stop
//	silent ─────────▶ kept ─────────────────▶ gone: the key is deleted
//	                  │  ▲
//	                  └──┘ every Period, and after each reconnect: written anew
//
// [Writer] has one goroutine, which begins with the first Start, the first time that
// the client asks for a lock. It ends with Stop, whose last act is to delete the
// key. A process that dies leaves the key for Life at most; one whose server forgot
// it writes it again within Period. A write that fails is tried again after a pause
// that grows up to Period, and logged once. A server without memory refuses it: the label
// that it has is kept then.
package label
