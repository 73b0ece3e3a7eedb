// Package rreadwritelock is Redisson's read/write lock, RReadWriteLock: several readers hold it
// at a time, or one writer.
package rreadwritelock
