// Package sentinel understands what Redis Sentinels say of masters on the servers that
// they watch. It does no I/O: whoever listens to [Channel] gives it the messages.
//
//	no word ──first──▶ named ──a later epoch names another──▶ switched ──▶ named
//	                     ▲                                                   │
//	                     └──── older epochs, and the same address: no news ──┘
package sentinel
