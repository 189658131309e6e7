-- KEYS: one sorted set a window. ARGV: the time in microseconds, a name for the
-- call, then for each window its limit and its length in microseconds.
-- Returns 0 if the call was entered in all windows, or how long to wait.
local now, member = tonumber(ARGV[1]), ARGV[2]
for i, key in ipairs(KEYS) do
  local limit, length = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - length)
  if redis.call('ZCARD', key) >= limit then
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    return tonumber(first[2]) + length - now
  end
end
for i, key in ipairs(KEYS) do
  redis.call('ZADD', key, now, member)
  redis.call('PEXPIRE', key, math.ceil(tonumber(ARGV[2 * i + 2]) / 1000))
end
return 0
