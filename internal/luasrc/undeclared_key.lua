-- Reads a reader's hold that does not exist, whose key the caller does not declare, as the scripts of
-- read/write locks do: some servers reject that.
--
-- KEYS[1]   the lock: need not exist
-- Replies:  the milliseconds that the hold has left, -2
-- Uses:     hold_key
return redis.call('PTTL', hold_key(KEYS[1], 'none', 1))
