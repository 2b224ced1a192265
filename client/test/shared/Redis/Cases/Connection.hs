-- | "Redis.Commands.Connection".
module Redis.Cases.Connection (connectionCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.CommandCase
import Redis.Commands.Connection
import Redis.Internal.Config (Credentials (..), toSecret)

connectionCases :: [Case]
connectionCases =
  [ onEmpty "ping" ping ["PING"] (Gives ()),
    onEmpty "pingMessage" (pingMessage "m") ["PING", "m"] (Gives "m"),
    onEmpty "echo" (echo "m") ["ECHO", "m"] (Gives "m"),
    onEmpty "clientId" clientId ["CLIENT", "ID"] (Such "is a number of the server's" (> 0)),
    -- The library sets no name by itself.
    onEmpty "clientGetname" clientGetname ["CLIENT", "GETNAME"] (Gives Nothing),
    lent (onEmpty "hello" (hello (HelloOptions 3 Nothing Nothing)) ["HELLO", "3"] (Such "speaks RESP3" (speaks 3))),
    lent $
      onEmpty
        "hello"
        (hello (HelloOptions 2 (Just (Credentials Nothing (toSecret "p"))) (Just "n")))
        ["HELLO", "2", "AUTH", "default", "p", "SETNAME", "n"]
        (Such "speaks RESP2" (speaks 2)),
    lent $
      after
        [user]
        "hello"
        (hello (HelloOptions 3 (Just (Credentials (Just "u") (toSecret "p"))) Nothing))
        ["HELLO", "3", "AUTH", "u", "p"]
        (Such "speaks RESP3" (speaks 3)),
    -- The user @default@ has no password.
    lent (onEmpty "auth" (auth (Credentials Nothing (toSecret "p"))) ["AUTH", "p"] (Fails "ERR")),
    lent (after [user] "auth" (auth (Credentials (Just "u") (toSecret "p"))) ["AUTH", "u", "p"] (Gives ())),
    lent (after [user] "auth" (auth (Credentials (Just "u") (toSecret "q"))) ["AUTH", "u", "q"] (Fails "WRONGPASS")),
    lent (onEmpty "select" (select 15) ["SELECT", "15"] (Gives ())),
    lent (onEmpty "select" (select 16) ["SELECT", "16"] (Fails "ERR")),
    lent (onEmpty "clientSetname" (clientSetname "n") ["CLIENT", "SETNAME", "n"] (Gives ())),
    lent (onEmpty "clientSetinfo" (clientSetinfo "LIB-NAME" "x") ["CLIENT", "SETINFO", "LIB-NAME", "x"] (Gives ())),
    lent (onEmpty "clientSetinfo" (clientSetinfo "LIB-VER" "1") ["CLIENT", "SETINFO", "LIB-VER", "1"] (Gives ())),
    lent (onEmpty "clientNoTouch" (clientNoTouch True) ["CLIENT", "NO-TOUCH", "ON"] (Gives ())),
    lent (onEmpty "clientNoTouch" (clientNoTouch False) ["CLIENT", "NO-TOUCH", "OFF"] (Gives ())),
    -- A standalone server refuses these, except Valkey.
    needs [(IsValkey, (8, 0))] (lent (onEmpty "readonly" readonly ["READONLY"] (Gives ()))),
    needs [(IsValkey, (8, 0))] (lent (onEmpty "readwrite" readwrite ["READWRITE"] (Gives ()))),
    lent (onEmpty "asking" asking ["ASKING"] (Fails "ERR")),
    lent (onEmpty "clientNoEvict" (clientNoEvict True) ["CLIENT", "NO-EVICT", "ON"] (Gives ())),
    lent (onEmpty "clientNoEvict" (clientNoEvict False) ["CLIENT", "NO-EVICT", "OFF"] (Gives ())),
    lent (onEmpty "clientCapa" (clientCapa ("redirect" :| ["nosuch"])) ["CLIENT", "CAPA", "redirect", "nosuch"] (Gives ())),
    -- The server is not configured for imports.
    lent (onEmpty "clientImportSource" (clientImportSource True) ["CLIENT", "IMPORT-SOURCE", "ON"] (Fails "ERR")),
    lent (onEmpty "clientImportSource" (clientImportSource False) ["CLIENT", "IMPORT-SOURCE", "OFF"] (Gives ())),
    lent (onEmpty "reset" reset ["RESET"] (Gives ())),
    lent (onEmpty "quit" quit ["QUIT"] (Gives ()))
  ]
  where
    speaks number ServerHello {helloProto, helloMode, helloRole} =
      helloProto == number && helloMode == "standalone" && helloRole == Just "master"

user :: [ByteString]
user = ["ACL", "SETUSER", "u", "on", ">p", "+@all"]
