-- | The bounds of a range of members, in the order of their bytes.
module Redis.Internal.Command.Lexical
  ( LexBound (..),
    lexBound,
  )
where

import Data.ByteString (ByteString)
import Redis.Command.Build

-- | The bound at which a range of members begins or ends.
data LexBound
  = -- | At these bytes, included.
    LexInclusive ByteString
  | -- | At these bytes, excluded.
    LexExclusive ByteString
  | -- | @-@: before all members.
    LexLowest
  | -- | @+@: after all members.
    LexHighest
  deriving stock (Eq, Show)

lexBound :: LexBound -> Argument
lexBound = \case
  LexInclusive member -> arg ("[" <> member)
  LexExclusive member -> arg ("(" <> member)
  LexLowest -> arg "-"
  LexHighest -> arg "+"
