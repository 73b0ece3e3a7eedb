/**
 * Redisson as a contestant: the Java side of the conversation that the Go package
 * bench/internal/work describes, and the same work, with threads for goroutines. A
 * JVM is kept for many measurements, so that it is warm.
 */
package dev.redlatch.bench;
