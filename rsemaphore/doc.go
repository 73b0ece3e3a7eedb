// Package rsemaphore is Redisson's semaphores.
package rsemaphore
