-- apply: records a turn: the one after the last, once. It writes values and adds
-- nothing up, and the number of the turn comes last, so that one that broke off half
-- way is made whole by saying it again.
-- KEYS[1]     the seat
-- KEYS[2..]   the records, and the policy where it has changed
-- ARGV[1..2]  epoch and mark of the leader
-- ARGV[3..4]  the number of the turn, and of the one before
-- ARGV[5]     how many arguments of the seat's fields and their values follow
-- then        these, and for each record
--             what: change, whole (nothing else stays) or gone
--             for how many milliseconds it is kept, 0 for ever
--             how many fields go, and how many arguments of fields and values are set
--             these fields, and these arguments
-- gives       applied, already, gap with the number of the last turn, or fenced with the
--             epoch that has the seat
local seat = redis.call('HMGET', KEYS[1], 'epoch', 'mark', 'vacant', 'seq')
if seat[1] ~= ARGV[1] or seat[2] ~= ARGV[2] or seat[3] ~= '0' then
  return {'fenced', seat[1] or '0'}
end
local now = redis.call('TIME')
if seat[4] == ARGV[3] then
  -- A write, however small, so that replicas can be waited for.
  redis.call('HSET', KEYS[1], 'clock', now[1] .. ' ' .. now[2])
  return {'already'}
elseif seat[4] ~= ARGV[4] then
  return {'gap', seat[4]}
end

local most = 4000 -- arguments of one command, an even number
local function each(command, key, from, to)
  while from <= to do
    redis.call(command, key, unpack(ARGV, from, math.min(to, from + most - 1)))
    from = from + most
  end
end

local at = 6 + tonumber(ARGV[5])
local fields = at - 1
for i = 2, #KEYS do
  local what, keep, drops, sets = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  at = at + 4
  if what ~= 'change' then
    redis.call('DEL', KEYS[i])
  end
  if what ~= 'gone' then
    each('HDEL', KEYS[i], at, at + drops - 1)
    each('HSET', KEYS[i], at + drops, at + drops + sets - 1)
    if keep ~= '0' then
      redis.call('PEXPIRE', KEYS[i], keep)
    end
  end
  at = at + drops + sets
end
redis.call('HSET', KEYS[1], 'seq', ARGV[3], 'clock', now[1] .. ' ' .. now[2], unpack(ARGV, 6, fields))
return {'applied'}
