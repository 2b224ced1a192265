{-# LANGUAGE ExistentialQuantification #-}

-- | What does a typed command cost compared with 'Commands.raw' of the same words? Each run makes
-- the command, writes it to a connection's buffer, and reads its reply.
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
import Redis.Internal.Command (Command (commandRequest), commandArguments)
import Redis.Internal.Protocol.Encode (requestPoke, requestSize)

-- | A command, its arguments, and the server's reply to it. Each run reads the arguments from the
-- reference; otherwise the command would be made only once.
data Call = forall arguments a.
  Call
  { callName :: String,
    callMake :: arguments -> Command a,
    callArguments :: IORef arguments,
    callWords :: IORef [ByteString],
    callReply :: ByteString
  }

-- | The calls to measure: keys of 16 bytes, values of 100; one field and one member.
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
  callWords <- newIORef (commandArguments (callMake arguments))
  pure Call {callName, callMake, callArguments, callWords, callReply}

-- | The memory that requests are written to.
newtype Buffer = Buffer (Ptr Word8)

-- | Allocates a buffer as large as a connection's. Nobody frees it.
newBuffer :: IO Buffer
newBuffer = Buffer <$> mallocBytes (64 * 1024)

-- | Makes the command, writes its request and reads its reply. Returns the size of the request.
callTyped, callRaw :: Buffer -> Call -> IO Int
callTyped buffer Call {callMake, callArguments, callReply} = calling buffer callMake callArguments callReply
callRaw buffer Call {callWords, callReply} = calling buffer Commands.raw callWords callReply

-- Not inlined, so that it is not specialised for each command: the library, too, gets a command as
-- a value.
calling :: Buffer -> (arguments -> Command a) -> IORef arguments -> ByteString -> IO Int
calling (Buffer at) make arguments reply = do
  given <- make <$> readIORef arguments
  encoded <- evaluate (commandRequest given)
  requestPoke encoded at
  _ <- evaluate =<< result given =<< parsed reply
  pure (requestSize encoded)
{-# NOINLINE calling #-}
