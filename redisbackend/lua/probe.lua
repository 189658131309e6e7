-- probe: tries what the other scripts do, on a key that nothing is in.
-- KEYS[1]  that key
-- gives    the commands that the user may not call; or the error of one that fails
--          otherwise
local refused = {}
for _, command in ipairs({
  {'HSET', KEYS[1], 'a', '1'}, {'PEXPIRE', KEYS[1], '1000'}, {'HMGET', KEYS[1], 'a'}, {'HGETALL', KEYS[1]},
  {'HDEL', KEYS[1], 'a'}, {'DEL', KEYS[1]}, {'TIME'},
}) do
  local reply = redis.pcall(unpack(command))
  local err = type(reply) == 'table' and reply.err
  if err and (string.find(err, 'NOPERM', 1, true) or string.find(err, "can't run this command", 1, true)) then
    refused[#refused + 1] = command[1]
  elseif err then
    return reply
  end
end
return refused
