-- look: reads the seat, and tells the server's clock and which life of it this is.
-- KEYS[1]  the seat
-- gives    seconds and microseconds of the server's clock; the server's run id, which
--          is empty where INFO is not allowed; the fields of the seat
local now = redis.call('TIME')
local info = redis.pcall('INFO', 'server')
local run = ''
if type(info) == 'string' then
  run = string.match(info, 'run_id:(%w+)') or ''
end
return {now[1], now[2], run, redis.call('HGETALL', KEYS[1])}
