-- | Builds commands of your own: those of a server's module, of a newer server, or of a
-- server that is not quite Redis.
--
-- > jsonGet :: ByteString -> ByteString -> Command (Maybe ByteString)
-- > jsonGet name path = Build.command "JSON.GET" [Build.key name, Build.arg path] (Decode.nullable Decode.bytes)
--
-- A command states its name, its arguments, which of them are keys, and how its reply is
-- read. The rest comes from a table of what servers tell about their commands: whether a
-- command only reads, whether it waits, and where it goes without keys. If the table
-- lacks a name, each client asks its server once, when it first sends such a command.
-- With 'onlyReads' or 'writes' it need not ask.
--
-- Import this module qualified.
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

    -- * Facts
    onlyReads,
    writes,
    blocksFor,
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Int (Int64)
import Data.Maybe (fromMaybe)
import Redis.Duration
import Redis.Internal.Command
import Redis.Internal.Command.Argument
import Redis.Internal.Command.Make
import Redis.Value (Value)

-- | A command that is sent as one line, such as @PING@: the server splits it at spaces that are not
-- within quotes. For load tests, and servers without RESP; else 'command' is better.
--
-- The line must be one command. A line that contains a line break or a zero byte, begins
-- with an asterisk, leaves a quote open, or has 64 kB or more, is refused when it is run
-- ('Redis.Error.NotOneLine'). So is a line without words ('Redis.Error.EmptyCommand').
inline :: ByteString -> Command Value
inline = fromLine

-- | A key: it decides where the command goes.
key :: ByteString -> Argument
key = Key
{-# INLINE key #-}

-- | Several keys.
keys :: Foldable f => f ByteString -> [Argument]
keys names = [Keys (toList names)]
{-# INLINE keys #-}

-- | An argument that is not a key.
arg :: ByteString -> Argument
arg = Plain
{-# INLINE arg #-}

-- | Several arguments that are not keys.
args :: Foldable f => f ByteString -> [Argument]
args = map Plain . toList
{-# INLINE args #-}

-- | A number in decimal digits.
int :: Int64 -> Argument
int = Plain . decimal
{-# INLINE int #-}

-- | A number that is not negative. With a negative one, the command is refused before it
-- is sent ('Redis.Error.UnfitArgument').
natural :: Int64 -> Argument
natural = atLeast 0

-- | A number of at least one. With a smaller one, the command is refused before it is
-- sent.
positive :: Int64 -> Argument
positive = atLeast 1

atLeast :: Int64 -> Int64 -> Argument
atLeast least number
  | number >= least = int number
  | otherwise = Unfit (show number <> ", which is less than " <> show least) (decimal number)

-- | A floating-point number. Infinities are sent as @inf@ and @-inf@. With a NaN, the
-- command is refused before it is sent.
double :: Double -> Argument
double number
  | isNaN number = Unfit "NaN" (floating number)
  | otherwise = Plain (floating number)

-- | A duration in whole seconds, rounded up.
wholeSeconds :: Duration -> Argument
wholeSeconds = Plain . secondsUp

-- | A duration in whole milliseconds, rounded up.
wholeMilliseconds :: Duration -> Argument
wholeMilliseconds = Plain . decimal . inMilliseconds

-- | A timeout in seconds with a fraction; 'Nothing' means no limit. A timeout of less
-- than two milliseconds becomes two milliseconds: zero means no limit to servers, and
-- servers before 7.0.8 read one millisecond as zero.
timeout :: Maybe Duration -> Argument
timeout = Plain . maybe "0" timeoutSeconds

-- | A word if the condition is true, otherwise nothing.
flag :: ByteString -> Bool -> [Argument]
flag word present = [Plain word | present]

-- | A word and its argument, or nothing for 'Nothing'.
option :: ByteString -> (a -> Argument) -> Maybe a -> [Argument]
option word render = maybe [] (\argument -> [Plain word, render argument])

-- | Declares that a command which the table lacks changes nothing: no server is asked about it, it
-- may be sent again, and a replica may answer it. No effect on a command that the table has, nor on
-- one that is given as words ('Redis.Commands.Raw.raw'), because only the server knows its keys.
onlyReads :: Command a -> Command a
onlyReads = declared readFacts

-- | Declares that a command which the table lacks writes: no server is asked about it.
-- After an error reply it is unknown whether the command did a part of its work
-- ('Redis.Error.MaybeExecuted'). Has no effect where 'onlyReads' has none.
writes :: Command a -> Command a
writes = declared untoldFacts

declared :: Facts -> Command a -> Command a
declared facts given = case commandRoute given of
  AskServer (Just known) named ->
    given
      { commandFacts = facts `withSettingsOf` commandFacts given,
        commandRoute = fromMaybe (routeOfUnknown known) named
      }
  _ -> given

-- | Declares that the server may keep the caller of this command waiting: for at most
-- this time or, with 'Nothing', without limit. The command gets a connection of its own.
blocksFor :: Maybe Duration -> Command a -> Command a
blocksFor limit given@Command {commandFacts} =
  given {commandFacts = withInfo (\info -> info {infoBlocking = maybe BlocksForever (BlocksFor . inSeconds) limit}) commandFacts}
