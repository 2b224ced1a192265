-- GET /users?page=1&limit=20.
dofile((debug.getinfo(1, "S").source:match("^@?(.*)/[^/]*$") or ".") .. "/common.lua")

wrk.path = "/users?page=1&limit=20"
