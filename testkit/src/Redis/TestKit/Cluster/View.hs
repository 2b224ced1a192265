-- | What one node of a cluster believes about all of them: the text of
-- @CLUSTER NODES@, read.
module Redis.TestKit.Cluster.View
  ( NodeView (..),
    NodeId,
    Slot,
    SlotRange,
    parseNodes,
    viewIsMaster,
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

-- | The 40 digits by which the nodes know each other.
type NodeId = ByteString

-- | 0 to 16383.
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
    -- | Whose replica it is.
    viewMaster :: Maybe NodeId,
    viewEpoch :: Int,
    -- | Whether the bus link to it is up.
    viewConnected :: Bool,
    viewSlots :: [SlotRange]
  }
  deriving stock (Eq, Show)

-- | Reads the text; lines of another form are left out.
parseNodes :: ByteString -> [NodeView]
parseNodes = mapMaybe (node . Char8.words) . Char8.lines
  where
    node (nodeId : address : flags : master : _ : _ : epoch : link : slots) =
      Just
        NodeView
          { viewId = nodeId,
            viewAddress = Char8.takeWhile (/= '@') address,
            viewFlags = Char8.split ',' flags,
            viewMaster = if master == "-" then Nothing else Just master,
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

-- | Whether it is a master, alive or not.
viewIsMaster :: NodeView -> Bool
viewIsMaster = elem "master" . viewFlags

-- | Whether nothing bad or unfinished is said of it.
viewIsAlive :: NodeView -> Bool
viewIsAlive view =
  not (any (`elem` viewFlags view) ["fail", "fail?", "handshake", "noaddr"])

-- | Whether it owns the slot.
viewOwns :: Slot -> NodeView -> Bool
viewOwns slot = any (\(from, to) -> from <= slot && slot <= to) . viewSlots

-- | The part of a view on which all nodes have to agree: who is there, in
-- which role, with which slots, by which configuration epoch (its master's, if
-- it has one). Nodes that have failed are left out.
--
-- The epoch is in it because a replica that has not heard of its master's
-- latest is refused every vote, for ever if the master dies before it tells.
type Agreement = [(NodeId, Maybe NodeId, [SlotRange], Int)]

-- | 'Nothing' while something is in flux: a node suspected, a handshake
-- going on.
agreement :: [NodeView] -> Maybe Agreement
agreement views
  | all viewIsAlive present =
    Just (sort [(viewId view, viewMaster view, viewSlots view, viewEpoch view) | view <- present])
  | otherwise = Nothing
  where
    present = filter (notElem "fail" . viewFlags) views
