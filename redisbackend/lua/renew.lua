-- renew: shows that the leader lives.
-- KEYS[1]     the seat
-- ARGV[1..2]  epoch and mark of the leader
-- ARGV[3..]   fields of the seat and their values
-- gives       ok, or fenced with the epoch that has the seat
local seat = redis.call('HMGET', KEYS[1], 'epoch', 'mark', 'vacant')
if seat[1] ~= ARGV[1] or seat[2] ~= ARGV[2] or seat[3] ~= '0' then
  return {'fenced', seat[1] or '0'}
end
local now = redis.call('TIME')
redis.call('HSET', KEYS[1], 'clock', now[1] .. ' ' .. now[2], unpack(ARGV, 3))
return {'ok'}
