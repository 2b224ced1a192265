-- | Which credentials are the newest, so that a connection is not lent again that
-- was opened with older ones.
--
-- Whatever a client's connections are opened and renewed with comes from one
-- action ('configCredentials'); the action that it is replaced with notes each of
-- its results. Credentials that never change are not noted: a connection that was
-- opened with them is as good as a new one.
module Redis.Internal.Network.Issues
  ( Issues,
    newIssues,
    noteIssue,
    isNewest,
    Issue,
    noting,
  )
where

import Data.IORef
import Redis.Duration (inSeconds)
import Redis.Internal.Config
import Redis.Internal.Network.Clock (Nanos, coarseNanos, nanosFromSeconds)

-- | What was issued to a client last.
newtype Issues = Issues (IORef (Maybe Issue))

-- | Credentials as they were issued.
data Issue = Issue
  { issueAs :: Credentials,
    -- | When they are to be replaced, if ever.
    issueUntil :: Maybe Nanos
  }

-- | Nothing yet.
newIssues :: IO Issues
newIssues = Issues <$> newIORef Nothing

-- | Takes it for the newest.
noteIssue :: Issues -> Issue -> IO ()
noteIssue (Issues newest) = writeIORef newest . Just

-- | Whether nothing else was issued since, and its time is not over. Never blocks.
isNewest :: Issues -> Maybe Issue -> IO Bool
isNewest (Issues newest) = \case
  Nothing -> pure True
  Just issue -> do
    now <- coarseNanos
    latest <- readIORef newest
    pure (maybe True ((== issueAs issue) . issueAs) latest && maybe True (now <) (issueUntil issue))

-- | The configuration, with an action that is told of what is issued.
noting :: (Issue -> IO ()) -> Config -> Config
noting note config = case configCredentials config of
  CredentialsFrom action -> config {configCredentials = CredentialsFrom (action >>= noted)}
  _ -> config
  where
    noted fresh = do
      now <- coarseNanos
      -- When shared connections are authenticated anew.
      let until' lifetime = now + nanosFromSeconds (inSeconds lifetime * 0.8)
      fresh <$ note Issue {issueAs = issuedAs fresh, issueUntil = until' <$> issuedFor fresh}
