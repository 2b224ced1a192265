-- GET /users/ID, each id drawn at random from all of them.
dofile((debug.getinfo(1, "S").source:match("^@?(.*)/[^/]*$") or ".") .. "/common.lua")

local prepared = {}
function init(args)
  begin()
  for id = 1, 10000 do prepared[id] = wrk.format("GET", "/users/" .. id) end
end

function request()
  return prepared[random_id()]
end
