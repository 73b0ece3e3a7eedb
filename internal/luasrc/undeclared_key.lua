-- Reads the key of a reader's hold that does not exist. Like the scripts for read/write locks, it uses a
-- key that the caller does not declare, which some servers reject.
--
-- KEYS[1]   the lock: does not have to exist
-- Replies:  -2, the TTL of the hold
-- Uses:     hold_key
return redis.call('PTTL', hold_key(KEYS[1], 'none', 1))
