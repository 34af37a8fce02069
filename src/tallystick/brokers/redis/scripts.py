"""The Lua scripts: each is one step in Redis, so a crash leaves no message between two lists.

A reservation of the app layout is the member `<32 hex>:<element>` in the deadlines. A settlement
removes this member first; if it is missing, the reservation has expired, and nothing is changed.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "LARAVEL_MIGRATE", "LARAVEL_RESERVE", "LARAVEL_SETTLE", "LEGACY_ACK", "LEGACY_REPLACE",
    "LEGACY_RESERVE", "LEGACY_SWEEP", "RENEW",
]  # fmt: skip

LEGACY_SWEEP: Final = """
local due = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, member in ipairs(due) do
  redis.call('ZREM', KEYS[3], member)
  if #member >= 34 and string.sub(member, 33, 33) == ':' then
    local element = string.sub(member, 34)
    if redis.call('LREM', KEYS[2], 1, element) == 1 then
      redis.call('RPUSH', KEYS[1], element)
    end
  end
end
"""
"""KEYS work, processing, deadlines; ARGV now, most to move (-1 is all)."""

LEGACY_RESERVE: Final = (
    LEGACY_SWEEP
    + """
local taken = redis.call('LRANGE', KEYS[1], 0, ARGV[5] - 1)
for start = 1, #taken, 1000 do
  local last = math.min(start + 999, #taken)
  local members = {}
  for index = start, last do
    members[#members + 1] = ARGV[3]
    members[#members + 1] = ARGV[4] .. string.format('%08x:', index - 1) .. taken[index]
  end
  redis.call('ZADD', KEYS[3], unpack(members))
  redis.call('RPUSH', KEYS[2], unpack(taken, start, last))
end
if #taken > 0 then redis.call('LTRIM', KEYS[1], #taken, -1) end
return taken
"""
)
"""The sweep, then up to ARGV[5] elements; ARGV now, most, deadline, token, how many.

The token is 24 hex digits; eight more count the elements of this call.
"""

LEGACY_ACK: Final = """
local scores = redis.call('ZMSCORE', KEYS[2], unpack(ARGV))
local first = redis.call('LRANGE', KEYS[1], 0, #ARGV - 1)
local whole = #first == #ARGV
for index = 1, #ARGV do
  if not whole then break end
  whole = scores[index] and first[index] == string.sub(ARGV[index], 34)
end
if whole then
  redis.call('ZREM', KEYS[2], unpack(ARGV))
  redis.call('LTRIM', KEYS[1], #ARGV, -1)
  return 0
end
local expired = 0
for _, member in ipairs(ARGV) do
  if redis.call('ZREM', KEYS[2], member) == 1 then
    redis.call('LREM', KEYS[1], 1, string.sub(member, 34))
  else
    expired = expired + 1
  end
end
return expired
"""
"""KEYS processing, deadlines; ARGV members. Gives how many had expired.

If one consumer settles in order, its elements are at the head of the list and are removed there.
"""

RENEW: Final = """
local gone = {}
for index = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[index]) then
    redis.call('ZADD', KEYS[1], ARGV[1], ARGV[index])
  else
    gone[#gone + 1] = index - 2
  end
end
return gone
"""
"""KEYS deadlines or reserved; ARGV deadline, members. Returns the indexes of the expired ones."""

LEGACY_REPLACE: Final = """
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('LREM', KEYS[1], 1, string.sub(ARGV[1], 34))
redis.call(ARGV[2], KEYS[3], ARGV[3])
return 1
"""
"""KEYS processing, deadlines, target; ARGV member, RPUSH or LPUSH, element."""

LARAVEL_MIGRATE: Final = """
local function migrate(source, now, most)
  local moved = 0
  while most < 0 or moved < most do
    local size = 100
    if most >= 0 then size = math.min(size, most - moved) end
    local due = redis.call('ZRANGEBYSCORE', source, '-inf', now, 'LIMIT', 0, size)
    if #due == 0 then return end
    redis.call('ZREM', source, unpack(due))
    redis.call('RPUSH', KEYS[1], unpack(due))
    for _ = 1, #due do redis.call('RPUSH', KEYS[4], 1) end
    moved = moved + #due
  end
end
migrate(KEYS[2], ARGV[1], tonumber(ARGV[2]))
if ARGV[3] ~= '' then migrate(KEYS[3], ARGV[1], tonumber(ARGV[2])) end
"""
"""KEYS work, delayed, reserved, notify; ARGV now, most, deadline (empty: recover nothing)."""

LARAVEL_RESERVE: Final = (
    LARAVEL_MIGRATE
    + """
local function counted(body)
  local read, document = pcall(cjson.decode, body)
  if not read or type(document) ~= 'table' or type(document.attempts) ~= 'number' then return end
  local attempts = document.attempts + 1
  document.attempts = attempts
  local written, text = pcall(cjson.encode, document)
  if not written then return end
  local head, digits, tail = string.match(body, '^(.*[,{]%s*"attempts"%s*:%s*)(%d+)(%s*}%s*)$')
  if digits and tonumber(digits) + 1 == attempts then
    return head .. string.format('%d', attempts) .. tail
  end
  return text
end
local taken = {}
for _ = 1, tonumber(ARGV[4]) do
  local body = redis.call('LPOP', KEYS[1])
  if not body then break end
  local member = counted(body)
  redis.call('ZADD', KEYS[3], ARGV[5], member or body)
  redis.call('LPOP', KEYS[4])
  taken[#taken + 1] = {body, member or body, member and 1 or 0}
end
return taken
"""
)
"""The migration, then up to ARGV[4] bodies reserved until ARGV[5].

A body that cannot be counted is reserved as it is. Where the count is the last member, only its
digits change: cjson would turn `[]` into `{}` and shorten numbers, and a reservation that expires
is handed out again.
"""

LARAVEL_SETTLE: Final = """
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
if ARGV[2] == 'ZADD' then
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
elseif ARGV[2] ~= '' then
  redis.call(ARGV[2], KEYS[2], ARGV[3])
  redis.call('RPUSH', KEYS[3], 1)
end
return 1
"""
"""KEYS reserved, target, its notify; ARGV member, ZADD, RPUSH, LPUSH or nothing, body, score."""
