// Package overload holds that a client bears more than it should be given: many
// thousands of callers at once, and a server that is slow. It has tests only.
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
// A renewal that is late shows in what a hold has left, which is what the watchdog
// goes by. Nobody may be told that an outcome is not known when the server was merely
// slow, beyond what can be in flight at a time.
//
// Sizes are a tenth of what the names of the tests say, so that they run with every
// change and with the race detector; with REDLATCH_OVERLOAD=full, which is
// `make overload`, they are what the names say, and the figures are logged.
package overload
