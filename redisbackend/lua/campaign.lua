-- campaign: puts another leader into the seat, if nobody has used that since it was seen.
-- KEYS[1]     the seat
-- ARGV[1..5]  epoch, mark, seq, beat and vacant as they were seen; epoch 0 for no seat
-- ARGV[6..7]  the format, and how many partitions there are
-- ARGV[8..]   fields and their values
-- gives       won, moved, or format or partitions with what the seat has
local names = {'epoch', 'mark', 'seq', 'beat', 'vacant', 'format', 'partitions'}
local seat = redis.call('HMGET', KEYS[1], unpack(names))
if seat[1] then
  for i = 6, 7 do
    if seat[i] ~= ARGV[i] then
      return {names[i], seat[i]}
    end
  end
  for i = 1, 5 do
    if seat[i] ~= ARGV[i] then
      return {'moved'}
    end
  end
elseif ARGV[1] ~= '0' then
  return {'moved'}
end
local now = redis.call('TIME')
redis.call('HSET', KEYS[1], 'format', ARGV[6], 'partitions', ARGV[7], 'seq', '0', 'vacant', '0',
  'clock', now[1] .. ' ' .. now[2], unpack(ARGV, 8))
return {'won'}
