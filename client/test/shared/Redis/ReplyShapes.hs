{-# LANGUAGE ExistentialQuantification #-}

-- | The replies of servers in RESP2 and in RESP3, and the meaning of both: recorded replies of a
-- Redis 7.0.
module Redis.ReplyShapes
  ( Shape (..),
    Meaning (..),
    shapes,
    wire,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.ReplyReaders

-- | A command and the reply to it.
data Shape = Shape
  { shapeName :: String,
    -- | The commands that run before it, on an empty server.
    shapeGiven :: [[ByteString]],
    shapeCommand :: [ByteString],
    shapeResp2 :: ByteString,
    shapeResp3 :: ByteString,
    shapeMeaning :: Meaning
  }

-- | The decoder of a reply, and the expected result.
data Meaning = forall a. (Eq a, Show a) => Meaning (Decoder a) a

-- | The lines of a reply. A bar ends each line, and the text may be split anywhere.
wire :: [ByteString] -> ByteString
wire = ByteString.concat . map (<> "\r\n") . Char8.split '|' . ByteString.concat

shapes :: [Shape]
shapes =
  [ Shape
      { shapeName = "GET of no key",
        shapeGiven = [],
        shapeCommand = ["GET", "nosuch"],
        shapeResp2 = wire ["$-1"],
        shapeResp3 = wire ["_"],
        shapeMeaning = Meaning (Decode.nullable Decode.bytes) Nothing
      },
    Shape
      { shapeName = "HGETALL",
        shapeGiven = [["HSET", "h", "a", "1", "b", "2"]],
        shapeCommand = ["HGETALL", "h"],
        shapeResp2 = wire ["*4|$1|a|$1|1|$1|b|$1|2"],
        shapeResp3 = wire ["%2|$1|a|$1|1|$1|b|$1|2"],
        shapeMeaning = Meaning (Decode.pairs Decode.bytes Decode.integer) [("a", 1), ("b", 2)]
      },
    Shape
      { shapeName = "HGETALL of no key",
        shapeGiven = [],
        shapeCommand = ["HGETALL", "h"],
        shapeResp2 = wire ["*0"],
        shapeResp3 = wire ["%0"],
        shapeMeaning = Meaning (Decode.mapping Decode.bytes Decode.bytes) mempty
      },
    Shape
      { shapeName = "HRANDFIELD WITHVALUES",
        shapeGiven = [["HSET", "h", "a", "1", "b", "2"]],
        shapeCommand = ["HRANDFIELD", "h", "5", "WITHVALUES"],
        shapeResp2 = wire ["*4|$1|a|$1|1|$1|b|$1|2"],
        shapeResp3 = wire ["*2|*2|$1|a|$1|1|*2|$1|b|$1|2"],
        shapeMeaning = Meaning (Decode.mapping Decode.bytes Decode.integer) (Map.fromList [("a", 1), ("b", 2)])
      },
    Shape
      { shapeName = "HSCAN",
        shapeGiven = [["HSET", "h", "a", "1", "b", "2"]],
        shapeCommand = ["HSCAN", "h", "0"],
        shapeResp2 = wire ["*2|$1|0|*4|$1|a|$1|1|$1|b|$1|2"],
        shapeResp3 = wire ["*2|$1|0|*4|$1|a|$1|1|$1|b|$1|2"],
        shapeMeaning = Meaning (Decode.pair Decode.bytes (Decode.mapping Decode.bytes Decode.bytes)) ("0", Map.fromList [("a", "1"), ("b", "2")])
      },
    Shape
      { shapeName = "CONFIG GET",
        shapeGiven = [],
        shapeCommand = ["CONFIG", "GET", "maxmemory-policy"],
        shapeResp2 = wire ["*2|$16|maxmemory-policy|$10|noeviction"],
        shapeResp3 = wire ["%1|$16|maxmemory-policy|$10|noeviction"],
        shapeMeaning = Meaning (Decode.pairs Decode.bytes Decode.bytes) [("maxmemory-policy", "noeviction")]
      },
    Shape
      { shapeName = "ZRANGE WITHSCORES",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["ZRANGE", "z", "0", "-1", "WITHSCORES"],
        shapeResp2 = wire ["*8|$1|a|$1|1|$1|b|$3|2.5|$1|c|$5|1e+20|$1|d|$3|inf"],
        shapeResp3 = wire ["*4|*2|$1|a|,1|*2|$1|b|,2.5|*2|$1|c|,1e+20|*2|$1|d|,inf"],
        shapeMeaning = Meaning Decode.scored [("a", 1), ("b", 2.5), ("c", 1e20), ("d", infinity)]
      },
    Shape
      { shapeName = "ZRANGE WITHSCORES of no key",
        shapeGiven = [],
        shapeCommand = ["ZRANGE", "z", "0", "-1", "WITHSCORES"],
        shapeResp2 = wire ["*0"],
        shapeResp3 = wire ["*0"],
        shapeMeaning = Meaning Decode.scored []
      },
    Shape
      { shapeName = "ZPOPMIN",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["ZPOPMIN", "z"],
        shapeResp2 = wire ["*2|$1|a|$1|1"],
        shapeResp3 = wire ["*2|$1|a|,1"],
        shapeMeaning = Meaning Decode.scored [("a", 1)]
      },
    Shape
      { shapeName = "ZPOPMIN with a count",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["ZPOPMIN", "z", "2"],
        shapeResp2 = wire ["*4|$1|a|$1|1|$1|b|$3|2.5"],
        shapeResp3 = wire ["*2|*2|$1|a|,1|*2|$1|b|,2.5"],
        shapeMeaning = Meaning Decode.scored [("a", 1), ("b", 2.5)]
      },
    Shape
      { shapeName = "ZPOPMIN of no key",
        shapeGiven = [],
        shapeCommand = ["ZPOPMIN", "z"],
        shapeResp2 = wire ["*0"],
        shapeResp3 = wire ["*0"],
        shapeMeaning = Meaning Decode.scored []
      },
    Shape
      { shapeName = "ZRANDMEMBER WITHSCORES",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b"]],
        shapeCommand = ["ZRANDMEMBER", "z", "5", "WITHSCORES"],
        shapeResp2 = wire ["*4|$1|b|$3|2.5|$1|a|$1|1"],
        shapeResp3 = wire ["*2|*2|$1|b|,2.5|*2|$1|a|,1"],
        shapeMeaning = Meaning (Decode.mapping Decode.bytes Decode.double) (Map.fromList [("a", 1), ("b", 2.5)])
      },
    Shape
      { shapeName = "ZMPOP",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["ZMPOP", "2", "y", "z", "MIN", "COUNT", "2"],
        shapeResp2 = wire ["*2|$1|z|*2|*2|$1|a|$1|1|*2|$1|b|$3|2.5"],
        shapeResp3 = wire ["*2|$1|z|*2|*2|$1|a|,1|*2|$1|b|,2.5"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pair Decode.bytes Decode.scored)) (Just ("z", [("a", 1), ("b", 2.5)]))
      },
    Shape
      { shapeName = "ZMPOP of no key",
        shapeGiven = [],
        shapeCommand = ["ZMPOP", "1", "z", "MIN"],
        shapeResp2 = wire ["*-1"],
        shapeResp3 = wire ["_"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pair Decode.bytes Decode.scored)) Nothing
      },
    Shape
      { shapeName = "BZPOPMIN",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["BZPOPMIN", "z", "0"],
        shapeResp2 = wire ["*3|$1|z|$1|a|$1|1"],
        shapeResp3 = wire ["*3|$1|z|$1|a|,1"],
        shapeMeaning = Meaning (Decode.nullable (Decode.triple Decode.bytes Decode.bytes Decode.double)) (Just ("z", "a", 1))
      },
    Shape
      { shapeName = "ZMSCORE",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["ZMSCORE", "z", "b", "nosuch", "d"],
        shapeResp2 = wire ["*3|$3|2.5|$-1|$3|inf"],
        shapeResp3 = wire ["*3|,2.5|_|,inf"],
        shapeMeaning = Meaning (Decode.list (Decode.nullable Decode.double)) [Just 2.5, Nothing, Just infinity]
      },
    Shape
      { shapeName = "ZADD INCR",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["ZADD", "z", "INCR", "0.25", "a"],
        shapeResp2 = wire ["$4|1.25"],
        shapeResp3 = wire [",1.25"],
        shapeMeaning = Meaning (Decode.nullable Decode.double) (Just 1.25)
      },
    Shape
      { shapeName = "ZADD NX INCR of a member",
        shapeGiven = [["ZADD", "z", "1", "a", "2.5", "b", "1e20", "c", "inf", "d"]],
        shapeCommand = ["ZADD", "z", "NX", "INCR", "0.25", "a"],
        shapeResp2 = wire ["$-1"],
        shapeResp3 = wire ["_"],
        shapeMeaning = Meaning (Decode.nullable Decode.double) Nothing
      },
    Shape
      { shapeName = "LMPOP",
        shapeGiven = [["RPUSH", "l", "a", "b", "c"]],
        shapeCommand = ["LMPOP", "1", "l", "LEFT", "COUNT", "2"],
        shapeResp2 = wire ["*2|$1|l|*2|$1|a|$1|b"],
        shapeResp3 = wire ["*2|$1|l|*2|$1|a|$1|b"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pair Decode.bytes (Decode.list Decode.bytes))) (Just ("l", ["a", "b"]))
      },
    Shape
      { shapeName = "LMPOP of no key",
        shapeGiven = [],
        shapeCommand = ["LMPOP", "1", "l", "LEFT"],
        shapeResp2 = wire ["*-1"],
        shapeResp3 = wire ["_"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pair Decode.bytes (Decode.list Decode.bytes))) Nothing
      },
    Shape
      { shapeName = "LPOP with a count, of no key",
        shapeGiven = [],
        shapeCommand = ["LPOP", "l", "2"],
        shapeResp2 = wire ["*-1"],
        shapeResp3 = wire ["_"],
        shapeMeaning = Meaning (Decode.nullable (Decode.list Decode.bytes)) Nothing
      },
    Shape
      { shapeName = "BLPOP",
        shapeGiven = [["RPUSH", "l", "a"]],
        shapeCommand = ["BLPOP", "l", "0"],
        shapeResp2 = wire ["*2|$1|l|$1|a"],
        shapeResp3 = wire ["*2|$1|l|$1|a"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pair Decode.bytes Decode.bytes)) (Just ("l", "a"))
      },
    Shape
      { shapeName = "SMEMBERS",
        shapeGiven = [["SADD", "s", "1", "2", "3"]],
        shapeCommand = ["SMEMBERS", "s"],
        shapeResp2 = wire ["*3|$1|1|$1|2|$1|3"],
        shapeResp3 = wire ["~3|$1|1|$1|2|$1|3"],
        shapeMeaning = Meaning (Decode.list Decode.integer) [1, 2, 3]
      },
    Shape
      { shapeName = "SMISMEMBER",
        shapeGiven = [["SADD", "s", "1"]],
        shapeCommand = ["SMISMEMBER", "s", "1", "2"],
        shapeResp2 = wire ["*2|:1|:0"],
        shapeResp3 = wire ["*2|:1|:0"],
        shapeMeaning = Meaning (Decode.list Decode.boolean) [True, False]
      },
    Shape
      { shapeName = "INCRBYFLOAT",
        shapeGiven = [],
        shapeCommand = ["INCRBYFLOAT", "k", "2.5"],
        shapeResp2 = wire ["$3|2.5"],
        shapeResp3 = wire ["$3|2.5"],
        shapeMeaning = Meaning Decode.double 2.5
      },
    Shape
      { shapeName = "GEOPOS",
        shapeGiven = [["GEOADD", "g", "13.5", "38.25", "a", "15.0", "37.5", "b"]],
        shapeCommand = ["GEOPOS", "g", "a", "nosuch"],
        shapeResp2 = wire ["*2|*2|$20|13.50000053644180298|$20|38.25000054050880038|*-1"],
        shapeResp3 = wire ["*2|*2|,13.50000053644180298|,38.25000054050880038|_"],
        shapeMeaning = Meaning (Decode.list (Decode.nullable near)) [Just (14, 38), Nothing]
      },
    Shape
      { shapeName = "GEOSEARCH WITHCOORD",
        shapeGiven = [["GEOADD", "g", "13.5", "38.25", "a", "15.0", "37.5", "b"]],
        shapeCommand = ["GEOSEARCH", "g", "FROMMEMBER", "a", "BYRADIUS", "500", "km", "ASC", "WITHCOORD"],
        shapeResp2 =
          wire
            [ "*2|*2|$1|a|*2|$20|13.50000053644180298|$20|38.25000054050880038|*2|$1|b|*2|$20|14.99999910593032",
              "837|$19|37.4999993619508345"
            ],
        shapeResp3 =
          wire
            [ "*2|*2|$1|a|*2|,13.50000053644180298|,38.25000054050880038|*2|$1|b|*2|,14.99999910593032837|,37.4",
              "999993619508345"
            ],
        shapeMeaning = Meaning (Decode.pairs Decode.bytes near) [("a", (14, 38)), ("b", (15, 37))]
      },
    Shape
      { shapeName = "GEOSEARCH WITHDIST WITHCOORD",
        shapeGiven = [["GEOADD", "g", "13.5", "38.25", "a", "15.0", "37.5", "b"]],
        shapeCommand = ["GEOSEARCH", "g", "FROMMEMBER", "a", "BYRADIUS", "500", "km", "ASC", "WITHDIST", "WITHCOORD"],
        shapeResp2 =
          wire
            [ "*2|*3|$1|a|$6|0.0000|*2|$20|13.50000053644180298|$20|38.25000054050880038|*3|$1|b|$8|155.8889|*2",
              "|$20|14.99999910593032837|$19|37.4999993619508345"
            ],
        shapeResp3 =
          wire
            [ "*2|*3|$1|a|$6|0.0000|*2|,13.50000053644180298|,38.25000054050880038|*3|$1|b|$8|155.8889|*2|,14.9",
              "9999910593032837|,37.4999993619508345"
            ],
        shapeMeaning = Meaning (Decode.list (Decode.triple Decode.bytes (fmap whole . Decode.double) near)) [("a", 0, (14, 38)), ("b", 156, (15, 37))]
      },
    Shape
      { shapeName = "XRANGE",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"]],
        shapeCommand = ["XRANGE", "x", "-", "+"],
        shapeResp2 = wire ["*2|*2|$3|1-1|*4|$1|f|$1|v|$1|g|$1|w|*2|$3|2-1|*2|$1|f|$1|u"],
        shapeResp3 = wire ["*2|*2|$3|1-1|*4|$1|f|$1|v|$1|g|$1|w|*2|$3|2-1|*2|$1|f|$1|u"],
        shapeMeaning = Meaning entries [("1-1", [("f", "v"), ("g", "w")]), ("2-1", [("f", "u")])]
      },
    Shape
      { shapeName = "XREAD",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"]],
        shapeCommand = ["XREAD", "STREAMS", "x", "1-1"],
        shapeResp2 = wire ["*1|*2|$1|x|*1|*2|$3|2-1|*2|$1|f|$1|u"],
        shapeResp3 = wire ["%1|$1|x|*1|*2|$3|2-1|*2|$1|f|$1|u"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pairs Decode.bytes entries)) (Just [("x", [("2-1", [("f", "u")])])])
      },
    Shape
      { shapeName = "XREAD of nothing new",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"]],
        shapeCommand = ["XREAD", "STREAMS", "x", "2-1"],
        shapeResp2 = wire ["*-1"],
        shapeResp3 = wire ["_"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pairs Decode.bytes entries)) Nothing
      },
    Shape
      { shapeName = "XREADGROUP of an entry that was deleted",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"], ["XGROUP", "CREATE", "x", "g", "0"], ["XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", ">"], ["XDEL", "x", "2-1"]],
        shapeCommand = ["XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", "1-1"],
        shapeResp2 = wire ["*1|*2|$1|x|*1|*2|$3|2-1|*-1"],
        shapeResp3 = wire ["%1|$1|x|*1|*2|$3|2-1|_"],
        shapeMeaning = Meaning (Decode.nullable (Decode.pairs Decode.bytes (Decode.pairs Decode.bytes (Decode.nullable (Decode.pairs Decode.bytes Decode.bytes))))) (Just [("x", [("2-1", Nothing)])])
      },
    Shape
      { shapeName = "XAUTOCLAIM",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"], ["XGROUP", "CREATE", "x", "g", "0"], ["XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", ">"]],
        shapeCommand = ["XAUTOCLAIM", "x", "g", "you", "0", "0"],
        shapeResp2 = wire ["*3|$3|0-0|*2|*2|$3|1-1|*4|$1|f|$1|v|$1|g|$1|w|*2|$3|2-1|*2|$1|f|$1|u|*0"],
        shapeResp3 = wire ["*3|$3|0-0|*2|*2|$3|1-1|*4|$1|f|$1|v|$1|g|$1|w|*2|$3|2-1|*2|$1|f|$1|u|*0"],
        shapeMeaning = Meaning claimed ("0-0", [("1-1", [("f", "v"), ("g", "w")]), ("2-1", [("f", "u")])])
      },
    Shape
      { shapeName = "XPENDING",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"], ["XGROUP", "CREATE", "x", "g", "0"], ["XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", ">"]],
        shapeCommand = ["XPENDING", "x", "g"],
        shapeResp2 = wire ["*4|:2|$3|1-1|$3|2-1|*1|*2|$2|me|$1|2"],
        shapeResp3 = wire ["*4|:2|$3|1-1|$3|2-1|*1|*2|$2|me|$1|2"],
        shapeMeaning = Meaning pendingEntries (2, Just [("me", 2)])
      },
    Shape
      { shapeName = "XPENDING of nothing",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"], ["XGROUP", "CREATE", "x", "g", "0"]],
        shapeCommand = ["XPENDING", "x", "g"],
        shapeResp2 = wire ["*4|:0|$-1|$-1|*-1"],
        shapeResp3 = wire ["*4|:0|_|_|_"],
        shapeMeaning = Meaning pendingEntries (0, Nothing)
      },
    Shape
      { shapeName = "XINFO STREAM",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"]],
        shapeCommand = ["XINFO", "STREAM", "x"],
        shapeResp2 =
          wire
            [ "*20|$6|length|:2|$15|radix-tree-keys|:1|$16|radix-tree-nodes|:2|$17|last-generated-id|$3|2-1|$20",
              "|max-deleted-entry-id|$3|0-0|$13|entries-added|:2|$23|recorded-first-entry-id|$3|1-1|$6|groups|:",
              "0|$11|first-entry|*2|$3|1-1|*4|$1|f|$1|v|$1|g|$1|w|$10|last-entry|*2|$3|2-1|*2|$1|f|$1|u"
            ],
        shapeResp3 =
          wire
            [ "%10|$6|length|:2|$15|radix-tree-keys|:1|$16|radix-tree-nodes|:2|$17|last-generated-id|$3|2-1|$20",
              "|max-deleted-entry-id|$3|0-0|$13|entries-added|:2|$23|recorded-first-entry-id|$3|1-1|$6|groups|:",
              "0|$11|first-entry|*2|$3|1-1|*4|$1|f|$1|v|$1|g|$1|w|$10|last-entry|*2|$3|2-1|*2|$1|f|$1|u"
            ],
        shapeMeaning = Meaning streamInfo (2, "2-1", Just ("1-1", [("f", "v"), ("g", "w")]))
      },
    Shape
      { shapeName = "XINFO STREAM of an empty stream",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"], ["XTRIM", "x", "MAXLEN", "0"]],
        shapeCommand = ["XINFO", "STREAM", "x"],
        shapeResp2 =
          wire
            [ "*20|$6|length|:0|$15|radix-tree-keys|:0|$16|radix-tree-nodes|:1|$17|last-generated-id|$3|2-1|$20",
              "|max-deleted-entry-id|$3|0-0|$13|entries-added|:2|$23|recorded-first-entry-id|$3|0-0|$6|groups|:",
              "0|$11|first-entry|$-1|$10|last-entry|$-1"
            ],
        shapeResp3 =
          wire
            [ "%10|$6|length|:0|$15|radix-tree-keys|:0|$16|radix-tree-nodes|:1|$17|last-generated-id|$3|2-1|$20",
              "|max-deleted-entry-id|$3|0-0|$13|entries-added|:2|$23|recorded-first-entry-id|$3|0-0|$6|groups|:",
              "0|$11|first-entry|_|$10|last-entry|_"
            ],
        shapeMeaning = Meaning streamInfo (0, "2-1", Nothing)
      },
    Shape
      { shapeName = "XINFO GROUPS",
        shapeGiven = [["XADD", "x", "1-1", "f", "v", "g", "w"], ["XADD", "x", "2-1", "f", "u"], ["XGROUP", "CREATE", "x", "g", "0"], ["XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", ">"]],
        shapeCommand = ["XINFO", "GROUPS", "x"],
        shapeResp2 =
          wire
            [ "*1|*12|$4|name|$1|g|$9|consumers|:1|$7|pending|:2|$17|last-delivered-id|$3|2-1|$12|entries-read|",
              ":2|$3|lag|:0"
            ],
        shapeResp3 =
          wire
            [ "*1|%6|$4|name|$1|g|$9|consumers|:1|$7|pending|:2|$17|last-delivered-id|$3|2-1|$12|entries-read|:",
              "2|$3|lag|:0"
            ],
        shapeMeaning = Meaning (Decode.list groupInfo) [("g", 2)]
      },
    Shape
      { shapeName = "COMMAND INFO",
        shapeGiven = [],
        shapeCommand = ["COMMAND", "INFO", "get", "nosuch"],
        shapeResp2 =
          wire
            [ "*2|*10|$3|get|:2|*2|+readonly|+fast|:1|:1|:1|*3|+@read|+@string|+@fast|*0|*1|*6|$5|flags|*2|+RO|",
              "+access|$12|begin_search|*4|$4|type|$5|index|$4|spec|*2|$5|index|:1|$9|find_keys|*4|$4|type|$5|r",
              "ange|$4|spec|*6|$7|lastkey|:0|$7|keystep|:1|$5|limit|:0|*0|$-1"
            ],
        shapeResp3 =
          wire
            [ "*2|*10|$3|get|:2|~2|+readonly|+fast|:1|:1|:1|~3|+@read|+@string|+@fast|~0|~1|%3|$5|flags|~2|+RO|",
              "+access|$12|begin_search|%2|$4|type|$5|index|$4|spec|%1|$5|index|:1|$9|find_keys|%2|$4|type|$5|r",
              "ange|$4|spec|%3|$7|lastkey|:0|$7|keystep|:1|$5|limit|:0|~0|_"
            ],
        shapeMeaning = Meaning (Decode.list (Decode.nullable commandInfo)) [Just ("get", 2, True), Nothing]
      },
    Shape
      { shapeName = "ACL GETUSER",
        shapeGiven = [["ACL", "SETUSER", "tester", "on", "nopass", "~a:*", "+get"]],
        shapeCommand = ["ACL", "GETUSER", "tester"],
        shapeResp2 =
          wire
            [ "*12|$5|flags|*2|$2|on|$6|nopass|$9|passwords|*0|$8|commands|$10|-@all +get|$4|keys|$4|~a:*|$8|ch",
              "annels|$0||$9|selectors|*0"
            ],
        shapeResp3 =
          wire
            [ "%6|$5|flags|~2|$2|on|$6|nopass|$9|passwords|*0|$8|commands|$10|-@all +get|$4|keys|$4|~a:*|$8|cha",
              "nnels|$0||$9|selectors|*0"
            ],
        shapeMeaning = Meaning userFlags (True, [])
      },
    Shape
      { shapeName = "FUNCTION LIST",
        shapeGiven = [["FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function{function_name='f', callback=function() return 1 end, flags={'no-writes'}}"]],
        shapeCommand = ["FUNCTION", "LIST", "LIBRARYNAME", "lib"],
        shapeResp2 =
          wire
            [ "*1|*6|$12|library_name|$3|lib|$6|engine|$3|LUA|$9|functions|*1|*6|$4|name|$1|f|$11|description|$",
              "-1|$5|flags|*1|+no-writes"
            ],
        shapeResp3 =
          wire
            [ "*1|%3|$12|library_name|$3|lib|$6|engine|$3|LUA|$9|functions|*1|%3|$4|name|$1|f|$11|description|_",
              "|$5|flags|~1|+no-writes"
            ],
        shapeMeaning = Meaning (Decode.list library) [("lib", "LUA", [("f", Nothing, ["no-writes"])])]
      },
    Shape
      { shapeName = "CLIENT TRACKINGINFO",
        shapeGiven = [],
        shapeCommand = ["CLIENT", "TRACKINGINFO"],
        shapeResp2 = wire ["*6|$5|flags|*1|$3|off|$8|redirect|:-1|$8|prefixes|*0"],
        shapeResp3 = wire ["%3|$5|flags|~1|$3|off|$8|redirect|:-1|$8|prefixes|*0"],
        shapeMeaning = Meaning tracking (["off"], -1, [])
      },
    Shape
      { shapeName = "MEMORY STATS",
        shapeGiven = [["SET", "k", "v"]],
        shapeCommand = ["MEMORY", "STATS"],
        shapeResp2 =
          wire
            [ "*56|$14|peak.allocated|:2035608|$15|total.allocated|:2039856|$17|startup.allocated|:876016|$19|r",
              "eplication.backlog|:0|$14|clients.slaves|:0|$14|clients.normal|:37632|$13|cluster.links|:0|$10|a",
              "of.buffer|:0|$10|lua.caches|:0|$16|functions.caches|:488|$4|db.0|*6|$23|overhead.hashtable.main|",
              ":72|$26|overhead.hashtable.expires|:0|$31|overhead.hashtable.slot-to-keys|:0|$14|overhead.total|",
              ":914208|$10|keys.count|:1|$18|keys.bytes-per-key|:1163840|$13|dataset.bytes|:1125648|$18|dataset",
              ".percentage|$18|96.718452453613281|$15|peak.percentage|$18|100.20868682861328|$19|allocator.allo",
              "cated|:2342696|$16|allocator.active|:2793472|$18|allocator.resident|:5464064|$29|allocator-fragm",
              "entation.ratio|$18|1.1924176216125488|$29|allocator-fragmentation.bytes|:450776|$19|allocator-rs",
              "s.ratio|$18|1.9560117721557617|$19|allocator-rss.bytes|:2670592|$18|rss-overhead.ratio|$18|2.361",
              "3193035125732|$18|rss-overhead.bytes|:7438336|$13|fragmentation|$18|6.9730038642883301|$19|fragm",
              "entation.bytes|:11052064"
            ],
        shapeResp3 =
          wire
            [ "%28|$14|peak.allocated|:2064576|$15|total.allocated|:2064512|$17|startup.allocated|:876016|$19|r",
              "eplication.backlog|:0|$14|clients.slaves|:0|$14|clients.normal|:37632|$13|cluster.links|:0|$10|a",
              "of.buffer|:0|$10|lua.caches|:0|$16|functions.caches|:488|$4|db.0|%3|$23|overhead.hashtable.main|",
              ":72|$26|overhead.hashtable.expires|:0|$31|overhead.hashtable.slot-to-keys|:0|$14|overhead.total|",
              ":914208|$10|keys.count|:1|$18|keys.bytes-per-key|:1188496|$13|dataset.bytes|:1150304|$18|dataset",
              ".percentage|,96.786529541015625|$15|peak.percentage|,99.996902465820312|$19|allocator.allocated|",
              ":2342696|$16|allocator.active|:2793472|$18|allocator.resident|:5464064|$29|allocator-fragmentati",
              "on.ratio|,1.1924176216125488|$29|allocator-fragmentation.bytes|:450776|$19|allocator-rss.ratio|,",
              "1.9560117721557617|$19|allocator-rss.bytes|:2670592|$18|rss-overhead.ratio|,2.3613193035125732|$",
              "18|rss-overhead.bytes|:7438336|$13|fragmentation|,6.9730038642883301|$19|fragmentation.bytes|:11",
              "052064"
            ],
        shapeMeaning = Meaning memory (1, True)
      },
    Shape
      { shapeName = "LCS IDX",
        shapeGiven = [["MSET", "{l}a", "ohmytext", "{l}b", "mynewtext"]],
        shapeCommand = ["LCS", "{l}a", "{l}b", "IDX"],
        shapeResp2 = wire ["*4|$7|matches|*2|*2|*2|:4|:7|*2|:5|:8|*2|*2|:2|:3|*2|:0|:1|$3|len|:6"],
        shapeResp3 = wire ["%2|$7|matches|*2|*2|*2|:4|:7|*2|:5|:8|*2|*2|:2|:3|*2|:0|:1|$3|len|:6"],
        shapeMeaning = Meaning lcs (6, [((4, 7), (5, 8)), ((2, 3), (0, 1))])
      },
    Shape
      { shapeName = "LCS IDX WITHMATCHLEN",
        shapeGiven = [["MSET", "{l}a", "ohmytext", "{l}b", "mynewtext"]],
        shapeCommand = ["LCS", "{l}a", "{l}b", "IDX", "WITHMATCHLEN"],
        shapeResp2 = wire ["*4|$7|matches|*2|*3|*2|:4|:7|*2|:5|:8|:4|*3|*2|:2|:3|*2|:0|:1|:2|$3|len|:6"],
        shapeResp3 = wire ["%2|$7|matches|*2|*3|*2|:4|:7|*2|:5|:8|:4|*3|*2|:2|:3|*2|:0|:1|:2|$3|len|:6"],
        shapeMeaning = Meaning lcs (6, [((4, 7), (5, 8)), ((2, 3), (0, 1))])
      },
    Shape
      { shapeName = "INFO",
        shapeGiven = [],
        shapeCommand = ["INFO", "keyspace"],
        shapeResp2 = wire ["$12|# Keyspace\r\n"],
        shapeResp3 = wire ["=16|txt:# Keyspace\r\n"],
        shapeMeaning = Meaning Decode.bytes "# Keyspace\r\n"
      },
    Shape
      { shapeName = "a script's double",
        shapeGiven = [],
        shapeCommand = ["EVAL", "return {double=3.5}", "0"],
        shapeResp2 = wire ["$3|3.5"],
        shapeResp3 = wire [",3.5"],
        shapeMeaning = Meaning Decode.double 3.5
      },
    Shape
      { shapeName = "a script's truth",
        shapeGiven = [],
        shapeCommand = ["EVAL", "redis.setresp(3) return {true, 1}", "0"],
        shapeResp2 = wire ["*2|:1|:1"],
        shapeResp3 = wire ["*2|#t|:1"],
        shapeMeaning = Meaning (Decode.list Decode.boolean) [True, True]
      },
    Shape
      { shapeName = "a script's big number",
        shapeGiven = [],
        shapeCommand = ["EVAL", "return {big_number='1234567890123'}", "0"],
        shapeResp2 = wire ["$13|1234567890123"],
        shapeResp3 = wire ["(1234567890123"],
        shapeMeaning = Meaning Decode.integer 1234567890123
      },
    Shape
      { shapeName = "a script's map",
        shapeGiven = [],
        shapeCommand = ["EVAL", "return {map={a=1}}", "0"],
        shapeResp2 = wire ["*2|$1|a|:1"],
        shapeResp3 = wire ["%1|$1|a|:1"],
        shapeMeaning = Meaning (Decode.pairs Decode.bytes Decode.integer) [("a", 1)]
      },
    Shape
      { shapeName = "a script's set",
        shapeGiven = [],
        shapeCommand = ["EVAL", "return {set={a=true}}", "0"],
        shapeResp2 = wire ["*1|$1|a"],
        shapeResp3 = wire ["~1|$1|a"],
        shapeMeaning = Meaning (Decode.list Decode.bytes) ["a"]
      },
    Shape
      { shapeName = "a script's verbatim string",
        shapeGiven = [],
        shapeCommand = ["EVAL", "return {verbatim_string={string='some text', format='txt'}}", "0"],
        shapeResp2 = wire ["$9|some text"],
        shapeResp3 = wire ["=13|txt:some text"],
        shapeMeaning = Meaning Decode.bytes "some text"
      },
    Shape
      { shapeName = "a script's nil",
        shapeGiven = [],
        shapeCommand = ["EVAL", "return {1, false}", "0"],
        shapeResp2 = wire ["*2|:1|$-1"],
        shapeResp3 = wire ["*2|:1|_"],
        shapeMeaning = Meaning (Decode.list (Decode.nullable Decode.integer)) [Just 1, Nothing]
      }
  ]
