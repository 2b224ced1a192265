-- | Walks over all keys of a server or a cluster, and over large hashes, sets and sorted
-- sets, page by page, in memory that does not grow with what is walked over.
--
-- > users <- foldScan client Redis.scanDefaults {Redis.scanMatch = Just "user:*"} (\count _key -> pure (count + 1)) 0
--
-- What is there from the beginning of a walk to its end is seen at least once, whatever
-- happens meanwhile: in a cluster also while nodes fail over and slots move. What comes or
-- goes meanwhile may be seen or not. The same may be seen several times, and is told
-- several times: to tell each thing once would take memory for all of them.
--
-- The next page is asked for before the present one is told, and in a cluster one of each
-- primary; so the caller's work and the servers' overlap. A page has about 1000 elements,
-- unless the options say otherwise.
--
-- A walk can be left at any time, and gone on with later, also by another process
-- ('walkPosition').
--
-- How it is done: <https://valkey.io/commands/scan/> for each node, and what each node owns
-- before and after.
module Redis.Scan
  ( -- * Folds
    foldScan,
    foldHscan,
    foldHscanNovalues,
    foldSscan,
    foldZscan,

    -- * Page by page
    Walk,
    walkScan,
    walkHscan,
    walkHscanNovalues,
    walkSscan,
    walkZscan,
    nextPage,
    foldWalk,
    WalkOptions (walkFrom, walkPatience),
    walkDefaults,

    -- * Going on later
    Position,
    walkPosition,
    positionText,
    positionFromText,
  )
where

import Control.Applicative ((<|>))
import Control.Monad (foldM)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Client
import Redis.Commands.Hash
import Redis.Commands.Keys
import Redis.Commands.Set
import Redis.Commands.SortedSet
import Redis.Internal.Client.ItemsWalker
import Redis.Internal.Client.KeysWalker
import Redis.Internal.Client.Walker
import Redis.Internal.Routing.Position

-- | Folds over the keys of a server's database, or of all of a cluster.
--
-- > foldScan client Redis.scanDefaults (\() key -> putStrLn (show key)) ()
--
-- Throws 'Redis.Error.Error' if it comes no further for a minute, and at once for what will
-- not pass, such as a command that this user may not run. \(O(n)\) on the servers in all
-- their keys, whatever the options leave out, in steps of a fraction of a millisecond.
--
-- @since 0.1.0.0
foldScan :: Client -> ScanOptions -> (a -> ByteString -> IO a) -> a -> IO a
foldScan client options = folding (walkScan walkDefaults client options)

-- | Folds over the fields and values of a hash. A hash that does not exist has none.
--
-- @since 0.1.0.0
foldHscan :: Client -> HscanOptions -> ByteString -> (a -> (ByteString, ByteString) -> IO a) -> a -> IO a
foldHscan client options key = folding (walkHscan walkDefaults client options key)

-- | Folds over the fields of a hash, which come alone. As 'hscanNovalues', not of all servers.
--
-- @since 0.1.0.0
foldHscanNovalues :: Client -> HscanOptions -> ByteString -> (a -> ByteString -> IO a) -> a -> IO a
foldHscanNovalues client options key = folding (walkHscanNovalues walkDefaults client options key)

-- | Folds over the members of a set.
--
-- @since 0.1.0.0
foldSscan :: Client -> SscanOptions -> ByteString -> (a -> ByteString -> IO a) -> a -> IO a
foldSscan client options key = folding (walkSscan walkDefaults client options key)

-- | Folds over the members of a sorted set and their scores, in no order.
--
-- @since 0.1.0.0
foldZscan :: Client -> ZscanOptions -> ByteString -> (a -> (ByteString, Double) -> IO a) -> a -> IO a
foldZscan client options key = folding (walkZscan walkDefaults client options key)

folding :: IO (Walk item) -> (a -> item -> IO a) -> a -> IO a
folding begin each initial = begin >>= \walk -> foldWalk walk each initial

-- | Folds over what is left of a walk. The fold is strict: the result so far is evaluated
-- before the next element.
--
-- @since 0.1.0.0
foldWalk :: Walk item -> (a -> item -> IO a) -> a -> IO a
foldWalk walk each = pages
  where
    pages !folded = nextPage walk >>= maybe (pure folded) (\page -> foldM strictly folded page >>= pages)
    strictly !folded = each folded
{-# INLINE foldWalk #-}

-- | Begins a walk over keys. Asks nobody before the first page is pulled.
--
-- @since 0.1.0.0
walkScan :: WalkOptions -> Client -> ScanOptions -> IO (Walk ByteString)
walkScan walking client options =
  walkKeys walking client options {scanCount = scanCount options <|> usualCount}

-- | Begins a walk over the fields and values of a hash.
--
-- @since 0.1.0.0
walkHscan :: WalkOptions -> Client -> HscanOptions -> ByteString -> IO (Walk (ByteString, ByteString))
walkHscan walking client options key =
  walkItems walking client Collection {collectionKind = "HSCAN", collectionKey = key, collectionPage = hscanWith (hscanPages options) key}

-- | Begins a walk over the fields of a hash.
--
-- @since 0.1.0.0
walkHscanNovalues :: WalkOptions -> Client -> HscanOptions -> ByteString -> IO (Walk ByteString)
walkHscanNovalues walking client options key =
  walkItems walking client Collection {collectionKind = "HSCAN", collectionKey = key, collectionPage = hscanNovalues (hscanPages options) key}

hscanPages :: HscanOptions -> HscanOptions
hscanPages options = options {hscanCount = hscanCount options <|> usualCount}

-- | Begins a walk over the members of a set.
--
-- @since 0.1.0.0
walkSscan :: WalkOptions -> Client -> SscanOptions -> ByteString -> IO (Walk ByteString)
walkSscan walking client options key =
  walkItems walking client Collection {collectionKind = "SSCAN", collectionKey = key, collectionPage = sscanWith options {sscanCount = sscanCount options <|> usualCount} key}

-- | Begins a walk over the members of a sorted set.
--
-- @since 0.1.0.0
walkZscan :: WalkOptions -> Client -> ZscanOptions -> ByteString -> IO (Walk (ByteString, Double))
walkZscan walking client options key =
  walkItems walking client Collection {collectionKind = "ZSCAN", collectionKey = key, collectionPage = zscanWith options {zscanCount = zscanCount options <|> usualCount} key}

-- Large enough that the round trip does not count, small enough that nobody waits for it.
usualCount :: Maybe Int64
usualCount = Just 1000

-- | The next page, which may be empty, or 'Nothing' at the end. Waits for the servers, and
-- for another thread that pulls; through failures for as long as 'walkPatience', and then
-- throws 'Redis.Error.Error'. The walk stands then where it stood, and may be pulled again. A
-- thread that is interrupted may lose a page that was about to be told: whoever goes on after
-- that does so from a position kept before.
--
-- @since 0.1.0.0
nextPage :: Walk item -> IO (Maybe [item])
nextPage = walkPull

-- | Where a walk stands: after the page that was pulled last. To be kept, as text, when that
-- page has been dealt with. Who goes on from there ('walkFrom'), with the same options, sees
-- what is left, and more if nodes have changed meanwhile. Never blocks.
--
-- @since 0.1.0.0
walkPosition :: Walk item -> IO Position
walkPosition = walkStands
