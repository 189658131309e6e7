-- load: reads records.
-- KEYS[1]     the seat
-- KEYS[2..]   the records
-- ARGV[1..2]  epoch and mark of the leader
-- gives       ok and the fields of each record, or the error of one that is none; or fenced
--             with the epoch that has the seat
local seat = redis.call('HMGET', KEYS[1], 'epoch', 'mark', 'vacant')
if seat[1] ~= ARGV[1] or seat[2] ~= ARGV[2] or seat[3] ~= '0' then
  return {'fenced', seat[1] or '0'}
end
local records = {'ok'}
for i = 2, #KEYS do
  records[i] = redis.pcall('HGETALL', KEYS[i])
end
return records
