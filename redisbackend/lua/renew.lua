-- renew: shows that the leader lives.
-- KEYS[1]     the seat
-- ARGV[1..2]  epoch and mark of the leader
-- ARGV[3]     the revision of the policy that the leader goes by
-- ARGV[4..]   fields of the seat and their values
-- gives       ok, policy with the one in force if that is a later one, or fenced with the
--             epoch that has the seat
local seat = redis.call('HMGET', KEYS[1], 'epoch', 'mark', 'vacant', 'policy')
if seat[1] ~= ARGV[1] or seat[2] ~= ARGV[2] or seat[3] ~= '0' then
  return {'fenced', seat[1] or '0'}
end
local revision = tonumber(string.match(seat[4] or '', '^%d+') or 0)
if revision > tonumber(ARGV[3]) then
  return {'policy', seat[4]}
end
local now = redis.call('TIME')
redis.call('HSET', KEYS[1], 'clock', now[1] .. ' ' .. now[2], unpack(ARGV, 4))
return {'ok'}
