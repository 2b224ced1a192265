-- | Walks over all keys of a server or a cluster, and over large hashes, sets and sorted sets, page
-- by page. A walk needs no more memory for more elements. Begin with 'foldScan':
--
-- > users <- foldScan client Redis.scanDefaults {Redis.scanMatch = Just "user:*"} (\count _key -> pure (count + 1)) 0
--
-- A walk returns every element that exists from its beginning to its end at least once, whatever
-- happens meanwhile: in a cluster also while nodes fail over and slots move. It may return or miss
-- an element that comes or goes meanwhile. It may return the same element several times: to return
-- each one once would take memory for all of them.
--
-- The client requests the next page before it returns the present one, in a cluster one page of each
-- primary; so the caller's work and the servers' overlap. A page has about 1000 elements by default
-- (the COUNT of the options).
--
-- A walk can be left at any time, and continued later, also by another process ('walkPosition').
--
-- How it works: <https://valkey.io/commands/scan/> on each node, and a look at the slots that the
-- node owns, before and after.
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
    WalkOptions (walkFrom, walkTimeout),
    walkDefaults,

    -- * Resuming
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
import Redis.Internal.Client.Scan
import Redis.Internal.Routing.Scan

-- | Folds over the keys of a server's database, or of a whole cluster.
--
-- > foldScan client Redis.scanDefaults (\() key -> putStrLn (show key)) ()
--
-- Throws 'Redis.Error.Error' if it makes no progress for a minute, and at once for an error that
-- will not pass, such as a command that this user may not run. \(O(n)\) on the servers in all their
-- keys, also in those that the options leave out, in steps of a fraction of a millisecond.
foldScan :: Client -> ScanOptions -> (a -> ByteString -> IO a) -> a -> IO a
foldScan client options = folding (walkScan walkDefaults client options)

-- | Folds over the fields and values of a hash. A hash that does not exist has none.
foldHscan :: Client -> HscanOptions -> ByteString -> (a -> (ByteString, ByteString) -> IO a) -> a -> IO a
foldHscan client options key = folding (walkHscan walkDefaults client options key)

-- | Folds over the fields of a hash, without their values. Not all servers can: see 'hscanNovalues'.
foldHscanNovalues :: Client -> HscanOptions -> ByteString -> (a -> ByteString -> IO a) -> a -> IO a
foldHscanNovalues client options key = folding (walkHscanNovalues walkDefaults client options key)

-- | Folds over the members of a set.
foldSscan :: Client -> SscanOptions -> ByteString -> (a -> ByteString -> IO a) -> a -> IO a
foldSscan client options key = folding (walkSscan walkDefaults client options key)

-- | Folds over the members of a sorted set and their scores, in no order.
foldZscan :: Client -> ZscanOptions -> ByteString -> (a -> (ByteString, Double) -> IO a) -> a -> IO a
foldZscan client options key = folding (walkZscan walkDefaults client options key)

folding :: IO (Walk item) -> (a -> item -> IO a) -> a -> IO a
folding begin each initial = begin >>= \walk -> foldWalk walk each initial

-- | Folds over the rest of a walk. The fold is strict: it evaluates the result so far before it
-- takes the next element.
foldWalk :: Walk item -> (a -> item -> IO a) -> a -> IO a
foldWalk walk each = pages
  where
    pages !folded = nextPage walk >>= maybe (pure folded) (\page -> foldM strictly folded page >>= pages)
    strictly !folded = each folded
{-# INLINE foldWalk #-}

-- | Begins a walk over keys. Sends nothing before the first page is pulled.
walkScan :: WalkOptions -> Client -> ScanOptions -> IO (Walk ByteString)
walkScan walking client options =
  walkKeys walking client options {scanCount = scanCount options <|> usualCount}

-- | Begins a walk over the fields and values of a hash.
walkHscan :: WalkOptions -> Client -> HscanOptions -> ByteString -> IO (Walk (ByteString, ByteString))
walkHscan walking client options key =
  walkItems walking client Collection {collectionKind = "HSCAN", collectionKey = key, collectionPage = hscanWith (hscanPages options) key}

-- | Begins a walk over the fields of a hash.
walkHscanNovalues :: WalkOptions -> Client -> HscanOptions -> ByteString -> IO (Walk ByteString)
walkHscanNovalues walking client options key =
  walkItems walking client Collection {collectionKind = "HSCAN", collectionKey = key, collectionPage = hscanNovalues (hscanPages options) key}

hscanPages :: HscanOptions -> HscanOptions
hscanPages options = options {hscanCount = hscanCount options <|> usualCount}

-- | Begins a walk over the members of a set.
walkSscan :: WalkOptions -> Client -> SscanOptions -> ByteString -> IO (Walk ByteString)
walkSscan walking client options key =
  walkItems walking client Collection {collectionKind = "SSCAN", collectionKey = key, collectionPage = sscanWith options {sscanCount = sscanCount options <|> usualCount} key}

-- | Begins a walk over the members of a sorted set.
walkZscan :: WalkOptions -> Client -> ZscanOptions -> ByteString -> IO (Walk (ByteString, Double))
walkZscan walking client options key =
  walkItems walking client Collection {collectionKind = "ZSCAN", collectionKey = key, collectionPage = zscanWith options {zscanCount = zscanCount options <|> usualCount} key}

-- Large enough that the round trip hardly counts, small enough that a step holds nobody up.
usualCount :: Maybe Int64
usualCount = Just 1000

-- | Pulls the next page, which may be empty; 'Nothing' at the end of the walk. Waits for the servers,
-- and for another thread that is pulling. Tries again after failures for as long as 'walkTimeout',
-- and then throws 'Redis.Error.Error'; the walk stays where it was, and may be pulled again. If a
-- thread is interrupted here, the page that it was about to get may be lost: to miss nothing,
-- continue then from a position that was kept before.
nextPage :: Walk item -> IO (Maybe [item])
nextPage = walkPull

-- | The position of a walk: after the page that was pulled last. Keep it, as text ('positionText'),
-- when that page has been dealt with. A walk that continues from there ('walkFrom'), with the same
-- options, returns what is left, and more if nodes have changed meanwhile. Never blocks.
walkPosition :: Walk item -> IO Position
walkPosition = walkStands
