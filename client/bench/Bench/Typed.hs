{-# LANGUAGE ExistentialQuantification #-}

-- | What does a typed command cost beside 'Commands.raw' of the same words: made,
-- written to a connection's buffer, and its reply read?
module Bench.Typed
  ( Call,
    callName,
    calls,
    callTyped,
    callRaw,
    Buffer,
    newBuffer,
  )
where

import Bench.Reply (parsed, result)
import Control.Exception (evaluate)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.IORef (IORef, newIORef, readIORef)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Word (Word8)
import Foreign.Marshal.Alloc (mallocBytes)
import Foreign.Ptr (Ptr)
import Redis.Commands qualified as Commands
import Redis.Internal.Command (Command (commandRequest), commandWords)
import Redis.Internal.Protocol.Encode (requestPoke, requestSize)

-- | A command, its arguments, and what the server says to it. The arguments are read
-- each time, or the command would be made once.
data Call = forall arguments a.
  Call
  { callName :: String,
    callMake :: arguments -> Command a,
    callArguments :: IORef arguments,
    callWords :: IORef [ByteString],
    callReply :: ByteString
  }

-- | Keys of 16 bytes, values of 100; one field and one member.
calls :: IO [Call]
calls =
  sequence
    [ call "get" Commands.get key (bulk value),
      call "set" (uncurry Commands.set) (key, value) "+OK\r\n",
      call "hset" (uncurry Commands.hset) (key, ("field", value) :| []) ":1\r\n",
      call "zadd" (uncurry Commands.zadd) (key, ("member", 1714) :| []) ":1\r\n",
      call "zadd-fraction" (uncurry Commands.zadd) (key, ("member", 17.25) :| []) ":1\r\n",
      call "mget" Commands.mget (key :| replicate 99 key) ("*100\r\n" <> ByteString.concat (replicate 100 (bulk value)))
    ]
  where
    key = "user:1000:000042"
    value = ByteString.replicate 100 0x78
    bulk bytes = "$100\r\n" <> bytes <> "\r\n"

call :: String -> (arguments -> Command a) -> arguments -> ByteString -> IO Call
call callName callMake arguments callReply = do
  callArguments <- newIORef arguments
  callWords <- newIORef (commandWords (callMake arguments))
  pure Call {callName, callMake, callArguments, callWords, callReply}

-- | Where requests are written to.
newtype Buffer = Buffer (Ptr Word8)

-- | As large as a connection's. Nobody frees it.
newBuffer :: IO Buffer
newBuffer = Buffer <$> mallocBytes (64 * 1024)

-- | The size of the request.
callTyped, callRaw :: Buffer -> Call -> IO Int
callTyped buffer Call {callMake, callArguments, callReply} = calling buffer callMake callArguments callReply
callRaw buffer Call {callWords, callReply} = calling buffer Commands.raw callWords callReply

-- Not for each command anew: whoever runs a command gets it as a value.
calling :: Buffer -> (arguments -> Command a) -> IORef arguments -> ByteString -> IO Int
calling (Buffer at) make arguments reply = do
  given <- make <$> readIORef arguments
  encoded <- evaluate (commandRequest given)
  requestPoke encoded at
  _ <- evaluate =<< result given =<< parsed reply
  pure (requestSize encoded)
{-# NOINLINE calling #-}
