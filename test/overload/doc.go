// Package overload checks that a client bears more load than it should get: many thousands
// of callers at once, and a server that is slow. It has tests only.
//
// Each test loads one client, which meanwhile keeps holds of its own:
//
//	calm ──────▶ loaded ─────────────────────▶ calm again
//	  │            │                             │
//	  │            │ what the callers get,       │ as before: the heap, the
//	  │            │ the heap, and all the       │ goroutines, a lock and an
//	  │            │ while: how much time the    │ unlock, what is on the server
//	  │            │ holds that are kept have    │
//	  ▼            ▼ left, sampled               ▼
//
// A renewal that is late shows in what a hold has left, which is what the watchdog goes by.
// When the server is merely slow, no more callers may get an unknown outcome than can be in
// flight at a time.
//
// Sizes are a tenth of those in the names of the tests, so that they run with every change
// and with the race detector; with REDLATCH_OVERLOAD=full they
// are those in the names, and the figures are logged.
package overload
