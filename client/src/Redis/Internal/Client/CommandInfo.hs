-- | Learns from the server what commands do, and where their keys are, if the command table
-- lacks them.
module Redis.Internal.Client.CommandInfo
  ( learn,
  )
where

import Control.Applicative ((<|>))
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.IORef
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe)
import Redis.Decode qualified as Decode
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Command hiding (commandKeys)
import Redis.Internal.Command.Make
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.CommandTable
import Redis.Internal.Routing.Cluster (isClustered)
import Redis.Value

-- | The facts and the route of a command, given its words and, if they are known, its keys.
-- The server is asked for the name, if that has not been done, and for the keys only where
-- they decide where the command goes. The second argument runs a command.
--
-- A command that the server does not know either, or says nothing of (a user may not be allowed to
-- ask; before 7.0 a server does not describe subcommands), may do anything: see 'unknownFacts'. It goes
-- to any node, which runs it, reports the mistake, or names the node that the command is for.
learn :: Core -> (Command Value -> IO (Either Error Value)) -> [ByteString] -> Maybe [ByteString] -> IO (Either Error (Facts, Route a))
learn core ask words' given = case words' of
  [] -> pure (Left (RefusedError EmptyCommand))
  name : rest -> do
    let title = nameFromArguments [name]
        -- The name of the container command and its subcommand.
        inner = (\subcommand -> title <> "|" <> nameFromArguments [subcommand]) <$> listToMaybe rest
    now <- coarseNanos
    known <- readIORef (coreLearnt core)
    described <- case Map.lookup title known <|> (inner >>= (`Map.lookup` known)) of
      Just (Described entry) -> pure (Right (Just entry))
      Just (Untold until') | now < until' -> pure (Right Nothing)
      _ -> askEntry title inner name
    case described of
      Left failed -> pure (Left failed)
      Right Nothing -> pure (Right (unknownFacts, routeOfUnknown (concat given)))
      Right (Just entry) -> fmap ((,) (factsFromEntry entry words') . routeOfKeys entry (drop 1 words')) <$> keysOf entry
  where
    keysOf entry = case given <|> commandKeys entry words' of
      Just keys -> pure (Right keys)
      Nothing -> if isClustered (coreCluster core) then askKeys else pure (Right [])

    askEntry title inner name =
      ask (fromArguments ["COMMAND", "INFO", name]) >>= \case
        Right (Array (description : _)) -> case (entryFromReply description, describedAs words' description) of
          (Just whole, Just entry) -> Right (Just entry) <$ note (if entryContainer whole then fromMaybe title inner else title) (Described entry)
          -- Before 7.0 a server says that there is such a command, and no more.
          (Just whole, Nothing) | not (entryContainer whole) -> untold title
          -- The server does not know the command, until a module brings it, and will say so
          -- in reply to the command itself.
          _ -> pure (Right Nothing)
        Right _ -> pure (Right Nothing)
        Left (ReplyError _) -> untold title
        Left failed -> pure (Left failed)

    untold title = do
      now <- coarseNanos
      Right Nothing <$ note title (Untold (now + nanosFromSeconds forgetAfter))

    -- A program may invent any number of names.
    note title what = atomicModifyIORef' (coreLearnt core) $ \known ->
      let kept = if Map.size known >= mostNames then Map.filter isDescribed known else known
       in (Map.insert title what kept, ())

    isDescribed = \case
      Described _ -> True
      Untold _ -> False

    askKeys =
      ask (fromArguments (["COMMAND", "GETKEYS"] <> words')) >>= \answer -> pure $ case answer of
        -- "The command has no key arguments" and similar errors.
        Left (ReplyError _) -> Right []
        _ -> answer >>= first UnexpectedReply . Decode.list Decode.bytes

-- | Seconds until a server that gave no description is asked again.
forgetAfter :: Double
forgetAfter = 60

-- | How many names are kept before those without a description are forgotten.
mostNames :: Int
mostNames = 1024
