-- | Connections, users and permissions.
module Tour.Access (tour) where

import Control.Exception (finally)
import Data.Foldable (for_)
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (minutes)

-- A command about a single node names that node. With a single server there is no need to.
tour :: Client -> IO ()
tour client = do
  -- Check whether a server answers.
  run client Redis.ping
  run client (Redis.echo "hello") >>= print
  nodes <- clientNodes client
  for_ (clientNodeEndpoint <$> take 1 nodes) $ \node -> do
    -- Connections: this one, and those that have been idle for five minutes.
    me <- run client (onNode node Redis.clientInfo)
    print (Redis.clientInfoUser me)
    others <- run client (onNode node Redis.clientList)
    print [Redis.clientInfoAddress one | one <- others, Redis.clientInfoIdle one > minutes 5]

    -- A command that changes the connection needs a connection that no other caller uses.
    withDedicated client (AtNode node) $ \connection -> do
      runOn connection (Redis.clientSetname "example:access")
      name <- runOn connection Redis.clientGetname
      print name
      normal <- run client (onNode node (Redis.clientListOf (Redis.ClientWith (Redis.HasType Redis.NormalClient) :| [])))
      print (length [one | one <- normal, Redis.clientInfoName one == name])

    -- A user, its rules, and what they permit.
    permissions client node `finally` run client (Redis.aclDeluser ("example:access" :| []))

permissions :: Client -> Endpoint -> IO ()
permissions client node = do
  run client (Redis.aclSetuser "example:access" [Redis.AclOn, Redis.AclPassword (toSecret "open sesame"), Redis.AclKeys "example:*", Redis.AclCategory "read"])
  user <- run client (onNode node (Redis.aclGetuser "example:access"))
  print (Redis.aclPermissionsKeys . Redis.aclUserPermissions <$> user)
  mayRead <- run client (onNode node (Redis.aclDryrun "example:access" ("GET" :| ["example:key"])))
  mayWrite <- run client (onNode node (Redis.aclDryrun "example:access" ("SET" :| ["example:key", "value"])))
  print (map (== Redis.AclAllowed) [mayRead, mayWrite])
  run client Redis.aclWhoami >>= print
