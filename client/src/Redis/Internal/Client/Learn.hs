-- | Commands that the table lacks: what they do and where their keys are, from the
-- server.
module Redis.Internal.Client.Learn
  ( learn,
  )
where

import Control.Applicative ((<|>))
import Data.ByteString (ByteString)
import Data.IORef
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe)
import Redis.Decode qualified as Decode
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Command hiding (commandKeys)
import Redis.Internal.Command.Make
import Redis.Internal.Network.Clock
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Routing.Router
import Redis.Value

-- | Facts and route of a command, given its words and, if they are known, its
-- keys. The server is asked for its name, if that has not been done, and for its
-- keys only where they decide where the command goes. The action runs a command.
--
-- A command that the server does not know either, or of which it says nothing
-- (a user may not be allowed to ask; before 7.0 it tells no subcommands), may be
-- anything: see 'unknownFacts'. It goes to any node, which runs it, says what is
-- wrong with it, or names the one that it is for.
learn :: Core -> (Command Value -> IO (Either Error Value)) -> [ByteString] -> Maybe [ByteString] -> IO (Either Error (Facts, Route a))
learn core ask words' given = case words' of
  [] -> pure (Left (RefusedError EmptyCommand))
  name : rest -> do
    let title = commandWordsName [name]
        -- Of which it may be the subcommand.
        inner = (\subcommand -> title <> "|" <> commandWordsName [subcommand]) <$> listToMaybe rest
    now <- coarseNanos
    known <- readIORef (coreLearnt core)
    described <- case Map.lookup title known <|> (inner >>= (`Map.lookup` known)) of
      Just (Described entry) -> pure (Right (Just entry))
      Just (Untold until') | now < until' -> pure (Right Nothing)
      _ -> askEntry title inner name
    case described of
      Left failed -> pure (Left failed)
      Right Nothing -> pure (Right (unknownFacts, routeOfUnknown (concat given)))
      Right (Just entry) -> fmap ((,) (factsFromEntry entry words') . routeOfKeys entry) <$> keysOf entry
  where
    keysOf entry = case (given, commandKeys entry words') of
      (Just keys, _) -> pure (Right keys)
      (Nothing, Just keys) -> pure (Right keys)
      (Nothing, Nothing)
        | isClustered (coreRouter core) -> askKeys
        | otherwise -> pure (Right [])

    askEntry title inner name =
      ask (fromWords ["COMMAND", "INFO", name]) >>= \case
        Right (Array (description : _)) -> case (entryFromReply description, describedAs words' description) of
          (Just whole, Just entry) -> Right (Just entry) <$ note (if entryContainer whole then fromMaybe title inner else title) (Described entry)
          -- Before 7.0 a server says that there is such a command, and no more.
          (Just whole, Nothing) | not (entryContainer whole) -> untold title
          -- It will say so to the command itself, until a module brings it.
          _ -> pure (Right Nothing)
        Right _ -> pure (Right Nothing)
        Left (ReplyError _) -> untold title
        Left failed -> pure (Left failed)

    untold title = do
      now <- coarseNanos
      Right Nothing <$ note title (Untold (now + nanosFromSeconds forgetAfter))

    -- A program may make names up without end.
    note title what = atomicModifyIORef' (coreLearnt core) $ \known ->
      let kept = if Map.size known >= mostNames then Map.filter isDescribed known else known
       in (Map.insert title what kept, ())

    isDescribed = \case
      Described _ -> True
      Untold _ -> False

    askKeys =
      ask (fromWords (["COMMAND", "GETKEYS"] <> words')) >>= \case
        Right reply -> pure (either (Left . UnexpectedReply) Right (Decode.list Decode.bytes reply))
        -- "The command has no key arguments" and the like.
        Left (ReplyError _) -> pure (Right [])
        Left failed -> pure (Left failed)

-- | Seconds until a server is asked again that would not tell.
forgetAfter :: Double
forgetAfter = 60

-- | Names that are kept before those of which nothing was told are forgotten.
mostNames :: Int
mostNames = 1024
