-- Takes a holder out, and wakes the waiters.
-- KEYS: lock. ARGV: id, publish command, channel, message.
-- Reply: 1 when it held the lock, nil when not.
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
    return nil
end
redis.call(ARGV[2], ARGV[3], ARGV[4])
return 1
