-- Each request is drawn for itself: 70 % GET one, 10 % GET the list (page 1 or
-- 2), 10 % POST, 5 % PUT, 5 % DELETE. What is read and changed is one of the seeded
-- users, at random; what is deleted is the oldest that the mix has created. If
-- seeded users were deleted, the faster service would soon have none left, and
-- answer 404 where the slower one still reads its cache.
--
-- A deletion may come before its user, as they are sent on different connections:
-- 404 is counted apart from what no answer may say.
dofile((debug.getinfo(1, "S").source:match("^@?(.*)/[^/]*$") or ".") .. "/common.lua")

-- Not local: common.lua asks each thread for it.
missing = 0
function response(status)
  if status == 404 then missing = missing + 1 end
end

local single, lists = {}, {}
function init(args)
  begin()
  for id = 1, 10000 do single[id] = wrk.format("GET", "/users/" .. id) end
  for page = 1, 2 do lists[page] = wrk.format("GET", "/users?page=" .. page .. "&limit=20") end
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  local draw = math.random(100)
  if draw <= 70 then return single[random_id()] end
  if draw <= 80 then return lists[math.random(2)] end
  if draw <= 90 then return wrk.format("POST", "/users", nil, body()) end
  if draw <= 95 then return wrk.format("PUT", "/users/" .. random_id(), nil, body()) end
  return wrk.format("DELETE", "/users/" .. oldest_new_id())
end
