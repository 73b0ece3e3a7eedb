package dev.redlatch.peer;

/** What a command does. */
@FunctionalInterface
interface Operation {
    /**
     * Does it and returns the reply's value; a CompletionStage answers when it
     * completes. What is thrown becomes the reply's error.
     */
    Object run(Request request) throws Exception;
}
