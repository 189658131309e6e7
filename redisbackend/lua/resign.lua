-- resign: gives the seat up.
-- KEYS[1]     the seat
-- ARGV[1..2]  epoch and mark of the leader
-- gives       ok, or fenced with the epoch that has the seat
local seat = redis.call('HMGET', KEYS[1], 'epoch', 'mark', 'vacant')
if seat[1] ~= ARGV[1] or seat[2] ~= ARGV[2] or seat[3] ~= '0' then
  return {'fenced', seat[1] or '0'}
end
redis.call('HSET', KEYS[1], 'vacant', '1')
return {'ok'}
