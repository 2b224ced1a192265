-- | Commands of your own: those of a server's module, of a newer server, or of
-- one that is not quite Redis.
--
-- > jsonGet :: ByteString -> ByteString -> Command (Maybe ByteString)
-- > jsonGet name path = Build.command "JSON.GET" [Build.key name, Build.arg path] (Decode.nullable Decode.bytes)
--
-- A command states its name, its arguments, which of them are keys, and how its
-- reply is read. What it does (whether it only reads, whether it waits) and where
-- it goes without keys come from a table of what servers say of their commands. Of
-- a name that the table lacks, each client asks its server once, when it first
-- sends such a command; 'onlyReads' and 'writes' say it instead.
--
-- To be imported qualified.
module Redis.Command.Build
  ( -- * A command
    command,
    Name,
    nameOf,
    inline,

    -- * Arguments
    Argument,
    key,
    keys,
    arg,
    args,
    int,
    natural,
    positive,
    double,
    wholeSeconds,
    wholeMilliseconds,
    timeout,
    flag,
    option,

    -- * What it does
    onlyReads,
    writes,
    blocksFor,
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Int (Int64)
import Redis.Duration
import Redis.Internal.Command
import Redis.Internal.Command.Argument
import Redis.Internal.Command.Make
import Redis.Value (Value)

-- | A line as one types it (@PING@), sent as it is: the server splits it at
-- spaces. For load tests and for servers without RESP; everything else is better
-- served by 'command'.
--
-- It is one command: a line with a line break or a zero byte in it, or with an
-- asterisk at its beginning, is refused when it is run ('Redis.Error.NotOneLine').
--
-- @since 0.1.0.0
inline :: ByteString -> Command Value
inline = fromLine

-- | A key: it decides where the command goes.
--
-- @since 0.1.0.0
key :: ByteString -> Argument
key = Key
{-# INLINE key #-}

-- | Several keys.
--
-- @since 0.1.0.0
keys :: Foldable f => f ByteString -> [Argument]
keys names = [Keys (toList names)]
{-# INLINE keys #-}

-- | An argument that is no key.
--
-- @since 0.1.0.0
arg :: ByteString -> Argument
arg = Plain
{-# INLINE arg #-}

-- | Several of them.
--
-- @since 0.1.0.0
args :: Foldable f => f ByteString -> [Argument]
args = map Plain . toList
{-# INLINE args #-}

-- | A number in decimal digits.
--
-- @since 0.1.0.0
int :: Int64 -> Argument
int = Plain . decimal
{-# INLINE int #-}

-- | A number that is not negative. With another the command is refused before it is
-- sent ('Redis.Error.UnfitArgument').
--
-- @since 0.1.0.0
natural :: Int64 -> Argument
natural = atLeast 0

-- | A number of at least one. With another the command is refused before it is sent.
--
-- @since 0.1.0.0
positive :: Int64 -> Argument
positive = atLeast 1

atLeast :: Int64 -> Int64 -> Argument
atLeast least number
  | number >= least = int number
  | otherwise = Unfit (show number <> ", which is less than " <> show least) (decimal number)

-- | A number as servers read it: @inf@ and @-inf@ for what has no digits. With NaN the
-- command is refused before it is sent.
--
-- @since 0.1.0.0
double :: Double -> Argument
double number
  | isNaN number = Unfit "what is not a number" (floating number)
  | otherwise = Plain (floating number)

-- | A duration in whole seconds, rounded up.
--
-- @since 0.1.0.0
wholeSeconds :: Duration -> Argument
wholeSeconds = Plain . secondsUp

-- | A duration in whole milliseconds, rounded up.
--
-- @since 0.1.0.0
wholeMilliseconds :: Duration -> Argument
wholeMilliseconds = Plain . decimal . inMilliseconds

-- | A timeout in seconds with a fraction; 'Nothing' is for ever. One of less than
-- two milliseconds becomes that: to servers zero is for ever, and those before
-- 7.0.8 take a millisecond for zero.
--
-- @since 0.1.0.0
timeout :: Maybe Duration -> Argument
timeout = Plain . maybe "0" timeoutSeconds

-- | A word that is there or not.
--
-- @since 0.1.0.0
flag :: ByteString -> Bool -> [Argument]
flag word present = [Plain word | present]

-- | A word and its argument, or neither.
--
-- @since 0.1.0.0
option :: ByteString -> (a -> Argument) -> Maybe a -> [Argument]
option word render = maybe [] (\argument -> [Plain word, render argument])

-- | Says of a command that the table lacks that it changes nothing: no server is
-- asked, it may be sent again, and a replica may answer it. Changes nothing on a
-- command that the table has.
--
-- @since 0.1.0.0
onlyReads :: Command a -> Command a
onlyReads = declared readFacts

-- | Says of a command that the table lacks that it writes: no server is asked. An
-- error of it leaves a doubt: nobody knows whether it stops half-way.
--
-- @since 0.1.0.0
writes :: Command a -> Command a
writes = declared writeFacts {factFailsHalfway = True}

declared :: Facts -> Command a -> Command a
declared facts given = case commandRoute given of
  AskServer (Just known) -> given {commandFacts = facts {factPatience = factPatience (commandFacts given), factReadFrom = factReadFrom (commandFacts given)}, commandRoute = routeOfUnknown known}
  _ -> given

-- | Says that the server may keep its caller waiting: for so long, or, with
-- 'Nothing', until something happens. It gets a connection of its own.
--
-- @since 0.1.0.0
blocksFor :: Maybe Duration -> Command a -> Command a
blocksFor limit given =
  given {commandFacts = (commandFacts given) {factBlocking = maybe BlocksForever (BlocksFor . inSeconds) limit}}
