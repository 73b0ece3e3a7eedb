-- Runs a command that writes a key, unless a higher token has been seen.
-- KEYS: the key with the highest token, the key that is written.
-- ARGV: token, command, arguments behind the command's key.
-- Reply: {1, the command's reply}, or {0, the highest token}.
local seen, token = redis.call('GET', KEYS[1]), ARGV[1]
if seen and (#seen > #token or #seen == #token and seen > token) then
    return {0, seen}
end
local reply = redis.call(ARGV[2], KEYS[2], unpack(ARGV, 3))
redis.call('SET', KEYS[1], token)
return {1, reply}
