-- POST /users, each with an e-mail address of its own.
dofile((debug.getinfo(1, "S").source:match("^@?(.*)/[^/]*$") or ".") .. "/common.lua")

function init(args)
  begin()
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  return wrk.format("POST", "/users", nil, body())
end
