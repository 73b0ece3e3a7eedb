-- Reads the key of a hold that no reader has. The caller does not declare that key, because the
-- scripts of read/write locks cannot declare the keys of other readers.
--
-- KEYS[1]   the lock: the key does not have to exist
-- Replies:  the milliseconds that the hold has left, -2
-- Effects:  none
-- Messages: none
-- Uses:     hold_key
return redis.call('PTTL', hold_key(KEYS[1], 'none', 1))
