-- | Who is connected, and who may do what.
module Tour.Access (tour) where

import Control.Exception (finally)
import Data.Foldable (for_)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (minutes)

-- What is one node's own names it. On a server alone it need not be named.
tour :: Client -> IO ()
tour client = do
  -- Whether a server answers.
  run client Redis.ping
  run client (Redis.echo "hello") >>= print
  nodes <- clientNodes client
  for_ (clientNodeEndpoint <$> take 1 nodes) $ \node -> do
    -- Connections: this one, and which of all have said nothing for a while.
    me <- run client (onNode node Redis.clientInfo)
    print (Redis.clientInfoUser me)
    others <- run client (onNode node Redis.clientList)
    print [Redis.clientInfoAddress one | one <- others, Redis.clientInfoIdle one > minutes 5]

    -- What changes a connection wants one that nobody shares.
    withDedicated client (AtNode node) $ \connection -> do
      runOn connection (Redis.clientSetname "example:access")
      name <- runOn connection Redis.clientGetname
      print name
      normal <- run client (onNode node (Redis.clientListOf (Redis.ClientWith (Redis.HasType Redis.NormalClient) :| [])))
      print (length [one | one <- normal, Redis.clientInfoName one == name])

    -- A user, the rules for it, and what they mean.
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
