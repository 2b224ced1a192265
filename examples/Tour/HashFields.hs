-- | Fields of hashes that expire on their own: Redis since 7.4, some since 8.0; Valkey since 9.0.
module Tour.HashFields (tour) where

import Control.Exception (displayException)
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (minutes)
import Tour.Fresh (fresh)

tour :: Client -> IO ()
tour client = fresh client ("example:hashfields" :| []) $ do
  run client (Redis.hset "example:hashfields" (("user", "ada") :| [("token", "a1b2"), ("code", "1234")])) >>= print
  -- One result for each field. An older server does not know these commands.
  expired <- tryRun client (Redis.hexpire "example:hashfields" (minutes 30) ("token" :| ["mail"]))
  case expired of
    Left failure -> putStrLn (takeWhile (/= ',') (displayException failure))
    Right each -> print each >> others client

others :: Client -> IO ()
others client = do
  left <- run client (Redis.httl "example:hashfields" ("user" :| ["mail"]))
  print left

  -- Options are fields of a record: this one changes the time only if the new one is later, which
  -- it is not.
  let later = Redis.hexpireDefaults {Redis.hexpireCondition = Just Redis.OnlyIfLater}
  run client (Redis.hexpireWith later "example:hashfields" (minutes 20) ("token" :| [])) >>= print
  run client (Redis.hpersist "example:hashfields" ("token" :| ["user"])) >>= print

  -- Set a field with a time to live, read it, and read it with an option.
  run client (Redis.hsetex "example:hashfields" (minutes 5) (("code", "5678") :| []))
  run client (Redis.hgetex "example:hashfields" ("code" :| [])) >>= print
  run client (Redis.hgetexWith Redis.hgetexDefaults {Redis.hgetexExpiry = Redis.NoExpiry} "example:hashfields" ("code" :| [])) >>= print
