/**
 * The Redisson peer: a process that does with a live Redisson what a test tells
 * it to.
 *
 * <p>Commands come on stdin and replies go to stdout, one JSON object a line.
 * Each command has an {@code id} and an {@code op}; its reply has the same
 * {@code id}, so a call that blocks answers when it is done, after others:
 *
 * <pre>
 * {"id":1,"op":"client","client":"a","addresses":["redis://127.0.0.1:6379"]}
 * {"id":2,"op":"lock","client":"a","thread":"t1","name":"orders","lease":3000}
 * {"id":2,"value":null,"from":1795225218771000,"to":1795225218771900}
 * {"id":3,"error":"IllegalMonitorStateException","message":"…","from":…,"to":…}
 * </pre>
 *
 * <p>{@code from} and {@code to} are microseconds since 1970: when the work
 * began and ended. The first line, with id 0, says that the peer is ready and
 * which release of Redisson it runs.
 *
 * <p>{@code thread} names the Java thread that does the work, made when it is
 * first named; commands to one thread run in order. Redisson takes a thread for
 * an owner, so a test chooses owners by choosing threads. At the end of stdin
 * the process ends at once and leaves its locks to their leases.
 *
 * <p>One build runs with every release: what is not in all of them is reached
 * by reflection ({@link dev.redlatch.peer.Settings}).
 */
package dev.redlatch.peer;
