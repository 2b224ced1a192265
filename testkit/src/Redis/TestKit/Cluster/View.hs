-- | One node's view of all nodes of its cluster: the text of
-- @CLUSTER NODES@, read.
module Redis.TestKit.Cluster.View
  ( NodeView (..),
    NodeId,
    Slot,
    SlotRange,
    parseNodes,
    viewIsPrimary,
    viewIsAlive,
    viewOwns,
    Agreement,
    agreement,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Data.Maybe (mapMaybe)

-- | The 40 digits that identify a node.
type NodeId = ByteString

-- | A slot, from 0 to 16383.
type Slot = Int

-- | The first and the last slot of a range.
type SlotRange = (Slot, Slot)

-- | One line of @CLUSTER NODES@.
data NodeView = NodeView
  { viewId :: NodeId,
    -- | @host:port@ as announced to clients.
    viewAddress :: ByteString,
    -- | @master@, @slave@, @myself@, @fail?@, @fail@, @handshake@ …
    viewFlags :: [ByteString],
    -- | The primary that it replicates, if it is a replica.
    viewPrimary :: Maybe NodeId,
    viewEpoch :: Int,
    -- | Whether the bus link to it is up.
    viewConnected :: Bool,
    viewSlots :: [SlotRange]
  }
  deriving stock (Eq, Show)

-- | Parses the text; skips lines of another form.
parseNodes :: ByteString -> [NodeView]
parseNodes = mapMaybe (node . Char8.words) . Char8.lines
  where
    node (nodeId : address : flags : primary : _ : _ : epoch : link : slots) =
      Just
        NodeView
          { viewId = nodeId,
            viewAddress = Char8.takeWhile (/= '@') address,
            viewFlags = Char8.split ',' flags,
            viewPrimary = if primary == "-" then Nothing else Just primary,
            viewEpoch = maybe 0 fst (Char8.readInt epoch),
            viewConnected = link == "connected",
            viewSlots = mapMaybe range slots
          }
    node _ = Nothing
    -- "[93->-id]" and "[93-<-id]" are migrations, not ownership.
    range text = do
      (from, rest) <- Char8.readInt text
      case Char8.uncons rest of
        Nothing -> Just (from, from)
        Just ('-', digits) -> (,) from . fst <$> Char8.readInt digits
        Just _ -> Nothing

-- | Whether it is a primary, alive or not.
viewIsPrimary :: NodeView -> Bool
viewIsPrimary = elem "master" . viewFlags

-- | Whether the node has none of the flags of a failed, suspected or unfinished node.
viewIsAlive :: NodeView -> Bool
viewIsAlive view =
  not (any (`elem` viewFlags view) ["fail", "fail?", "handshake", "noaddr"])

-- | Whether it owns the slot.
viewOwns :: Slot -> NodeView -> Bool
viewOwns slot = any (\(from, to) -> from <= slot && slot <= to) . viewSlots

-- | The part of a view on which all nodes must agree: the nodes, their roles, their slots, and
-- their configuration epochs (a replica has its primary's). Nodes that have failed are left out.
--
-- The epoch is included because a replica that does not know its primary's latest epoch gets no
-- votes, and never will if the primary dies before it tells.
type Agreement = [(NodeId, Maybe NodeId, [SlotRange], Int)]

-- | The agreement that a view expresses; 'Nothing' while a node is suspected or a handshake is in
-- progress.
agreement :: [NodeView] -> Maybe Agreement
agreement views
  | all viewIsAlive present =
    Just (sort [(viewId view, viewPrimary view, viewSlots view, viewEpoch view) | view <- present])
  | otherwise = Nothing
  where
    present = filter (notElem "fail" . viewFlags) views
