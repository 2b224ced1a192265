-- | How the program ends when it cannot do its task: with one line, and an exit code that scripts
-- can distinguish.
module Tool.Failure
  ( Failure (..),
    invalidRun,
    unavailable,
    describe,
    serverProblem,
    reason,
    exitGateMissed,
    exitInvalid,
    exitUnavailable,
  )
where

import Control.Exception (Exception (displayException), SomeException, fromException, throwIO)
import Data.Char (isLower, toLower)
import Data.List (intercalate, nub)
import GHC.IO.Exception (IOErrorType (ResourceVanished), IOException (ioe_description))
import Redis.Config (ConfigError)
import Redis.Error qualified as Redis
import Redis.TestKit.Wait (TestKitFailure)
import System.IO.Error (ioeGetErrorString, ioeGetErrorType, ioeGetFileName, isFullError)

-- | An exit code and the line to print.
data Failure = Failure
  { failureCode :: Int,
    failureText :: String
  }
  deriving stock (Eq, Show)

instance Exception Failure

-- | Ends a run whose numbers would be meaningless.
invalidRun :: String -> IO a
invalidRun = throwIO . Failure exitInvalid

-- | Ends the program because a server, a file or a program is not available.
unavailable :: String -> IO a
unavailable = throwIO . Failure exitUnavailable

-- | The message and the exit code for an exception. 'Nothing' for an exception that is not about
-- the server, a file or a program.
describe :: SomeException -> Maybe Failure
describe exception
  | Just failure <- fromException exception = Just failure
  | Just problem <- fromException exception = Just (environment (serverProblem problem))
  | Just problem <- fromException exception =
    Just (Failure exitInvalid (displayException (problem :: ConfigError)))
  | Just problem <- fromException exception = Just (environment (show (problem :: TestKitFailure)))
  | Just problem <- fromException exception = Just (environment (ioError' problem))
  | otherwise = Nothing
  where
    environment = Failure exitUnavailable . takeWhile (/= '\n')

-- | The cause of an error, without the name of the node.
reason :: Redis.Error -> String
reason = \case
  Redis.ConnectionError Redis.ConnectionFailure {Redis.connectionCause = cause} ->
    Redis.renderCause cause
  problem -> displayException problem

-- | The message for a user at the command line, with each server and reason once.
serverProblem :: Redis.Error -> String
serverProblem = \case
  Redis.ConnectionError (Redis.ConnectionFailure _ _ endpoint cause) ->
    Redis.renderEndpoint endpoint <> ": " <> Redis.renderCause cause
  Redis.RoutingError (Redis.RoutingFailure _ _ (Redis.NoReachableNode tried)) ->
    "no node can be reached: " <> reasons tried
  Redis.RoutingError (Redis.RoutingFailure _ _ (Redis.AttemptsExhausted tried)) ->
    "no node answers: " <> reasons tried
  problem -> displayException problem
  where
    reasons tried =
      intercalate "; " . nub $
        [Redis.renderEndpoint endpoint <> ": " <> reason why | (endpoint, why) <- tried]

ioError' :: IOException -> String
ioError' problem = maybe id (\file -> ((file <> ": ") <>)) (ioeGetFileName problem) said
  where
    said
      | isFullError problem = "the disk is full"
      | ioeGetErrorType problem == ResourceVanished = "its reader has closed it"
      | null (ioe_description problem) = ioeGetErrorString problem
      -- The system's own words: one type of errors has several reasons.
      | otherwise = uncapitalised (ioe_description problem)
    uncapitalised text = case text of
      first : second : rest | isLower second || second == ' ' -> toLower first : second : rest
      _ -> text

-- | Exit codes: of a comparison or a gate that failed; of bad options, or of a run that is not valid;
-- and if something outside the program is missing.
exitGateMissed, exitInvalid, exitUnavailable :: Int
exitGateMissed = 1
exitInvalid = 2
exitUnavailable = 3
