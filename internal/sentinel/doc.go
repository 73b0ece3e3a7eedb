// Package sentinel understands what Redis Sentinels say of masters on the servers that
// they watch. It does no I/O: its caller subscribes to [Channel] and gives it the
// messages.
//
//	no word ──first──▶ named ──a later epoch names another──▶ switched ──▶ named
//	                     ▲                                                   │
//	                     └──── older epochs, and the same address: no news ──┘
//
// An older epoch is the first word again when none but older ones was heard for ten seconds.
package sentinel
