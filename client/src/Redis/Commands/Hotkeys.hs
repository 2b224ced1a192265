-- | The keys that cost a server most: those that its commands spend most time on, and those that make
-- most traffic.
--
-- > run client (onNode node (Redis.hotkeysStart Redis.HotkeysCpu))
-- > found <- run client (onNode node Redis.hotkeysGet)
--
-- Redis has these commands since 8.6.0; Valkey lacks them. In a cluster, name the node, except for
-- 'hotkeysHelp'. The server's page: <https://redis.io/docs/latest/commands/hotkeys/>.
module Redis.Commands.Hotkeys
  ( hotkeysStart,
    hotkeysStartWith,
    HotkeysMetrics (..),
    HotkeysStartOptions (hotkeysStartCount, hotkeysStartDuration, hotkeysStartSample, hotkeysStartSlots),
    hotkeysStartDefaults,
    hotkeysStop,
    hotkeysReset,
    hotkeysGet,
    Hotkeys (..),
    hotkeysHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.ClusterNode (SlotRange (..))
import Redis.Internal.Command.Common

-- | What the server measures.
data HotkeysMetrics
  = -- | CPU: the time that the server spends on commands.
    HotkeysCpu
  | -- | NET: the bytes of commands and replies.
    HotkeysNet
  | HotkeysCpuAndNet
  deriving stock (Eq, Show)

-- | @HOTKEYS START METRICS …@: the server begins to measure. An error if it does so already. Until
-- it is stopped, each command costs the server some more time. \(O(1)\),
-- [since Redis 8.6.0](https://redis.io/docs/latest/commands/hotkeys-start/).
hotkeysStart :: HotkeysMetrics -> Command ()
hotkeysStart = hotkeysStartWith hotkeysStartDefaults

-- | The options of 'hotkeysStartWith'.
data HotkeysStartOptions = HotkeysStartOptions
  { -- | COUNT: how many keys the server reports; 'Nothing' means 10.
    hotkeysStartCount :: Maybe Int64,
    -- | DURATION: when it stops by itself, in whole seconds, rounded up; 'Nothing' means never.
    hotkeysStartDuration :: Maybe Duration,
    -- | SAMPLE: one command in so many is measured; 'Nothing' means all.
    hotkeysStartSample :: Maybe Int64,
    -- | SLOTS, in a cluster: only the keys of these slots. 'Nothing' means all.
    hotkeysStartSlots :: Maybe (NonEmpty Int)
  }
  deriving stock (Eq, Show)

-- | The ten hottest keys, until it is stopped, of all commands.
hotkeysStartDefaults :: HotkeysStartOptions
hotkeysStartDefaults =
  HotkeysStartOptions
    { hotkeysStartCount = Nothing,
      hotkeysStartDuration = Nothing,
      hotkeysStartSample = Nothing,
      hotkeysStartSlots = Nothing
    }

-- | @HOTKEYS START METRICS n [CPU] [NET] [COUNT n] [DURATION seconds] [SAMPLE n] [SLOTS n slot …]@:
-- like 'hotkeysStart', with options.
hotkeysStartWith :: HotkeysStartOptions -> HotkeysMetrics -> Command ()
hotkeysStartWith HotkeysStartOptions {hotkeysStartCount, hotkeysStartDuration, hotkeysStartSample, hotkeysStartSlots} metrics =
  command
    "HOTKEYS START"
    ( (arg "METRICS" : counted arg measured)
        <> option "COUNT" int hotkeysStartCount
        <> option "DURATION" wholeSeconds hotkeysStartDuration
        <> option "SAMPLE" int hotkeysStartSample
        <> maybe [] (\slots -> arg "SLOTS" : counted (int . fromIntegral) (toList slots)) hotkeysStartSlots
    )
    Decode.okay
  where
    measured = case metrics of
      HotkeysCpu -> ["CPU"]
      HotkeysNet -> ["NET"]
      HotkeysCpuAndNet -> ["CPU", "NET"]
    counted render those = int (fromIntegral (length those)) : map render those

-- | @HOTKEYS STOP@: the server stops measuring, and keeps what it has found; 'False' if it did not
-- measure. \(O(1)\), [since Redis 8.6.0](https://redis.io/docs/latest/commands/hotkeys-stop/).
hotkeysStop :: Command Bool
hotkeysStop = command "HOTKEYS STOP" [] (Decode.present Decode.okay)

-- | @HOTKEYS RESET@: the server forgets what it has found. An error while it measures. \(O(1)\),
-- [since Redis 8.6.0](https://redis.io/docs/latest/commands/hotkeys-reset/).
hotkeysReset :: Command ()
hotkeysReset = command "HOTKEYS RESET" [] Decode.okay

-- | The hottest keys, and all commands of the same time for comparison.
data Hotkeys = Hotkeys
  { -- | Whether the server still measures.
    hotkeysActive :: Bool,
    -- | One command in so many was measured.
    hotkeysSampleRatio :: Int64,
    hotkeysSelectedSlots :: [SlotRange],
    -- | When the server began.
    hotkeysCollectionStart :: UTCTime,
    hotkeysCollectionDuration :: Duration,
    -- | The time of all commands.
    hotkeysAllCommandsTime :: Duration,
    -- | The bytes of all commands and replies.
    hotkeysAllCommandsNetBytes :: Int64,
    -- | The keys on which commands spent most time, with that time; the first is the hottest.
    hotkeysByCpuTime :: [(ByteString, Duration)],
    -- | The keys with most bytes of commands and replies, with that number.
    hotkeysByNetBytes :: [(ByteString, Int64)],
    hotkeysOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | @HOTKEYS GET@: what the server has found so far; 'Nothing' if it was not started. \(O(n)\) in
-- the number of keys, [since Redis 8.6.0](https://redis.io/docs/latest/commands/hotkeys-get/).
hotkeysGet :: Command (Maybe Hotkeys)
hotkeysGet = command "HOTKEYS GET" [] . Decode.nullable $ \reply ->
  Decode.list Decode.value reply >>= Decode.element 0 hotkeys

hotkeys :: Decoder Hotkeys
hotkeys =
  recordOf $
    Hotkeys
      <$> field "tracking-active" Decode.boolean
      <*> field "sample-ratio" Decode.integer
      <*> field "selected-slots" (Decode.list slots)
      <*> field "collection-start-time-unix-ms" Decode.unixMilliseconds
      <*> field "collection-duration-ms" millisecondsReply
      <*> field "all-commands-all-slots-us" microsecondsReply
      <*> field "net-bytes-all-commands-all-slots" Decode.integer
      <*> several "by-cpu-time-us" (Decode.pairs Decode.bytes microsecondsReply)
      <*> several "by-net-bytes" (Decode.pairs Decode.bytes Decode.integer)
      <*> others Decode.value
  where
    -- A slot alone, or the first and the last of a range.
    slots one =
      Decode.list Decode.integer one >>= \case
        [first] -> Right (SlotRange (fromIntegral first) (fromIntegral first))
        [first, end] -> Right (SlotRange (fromIntegral first) (fromIntegral end))
        _ -> Decode.mismatch "a slot or a range of slots" one

-- | @HOTKEYS HELP@: the server's help.
-- [Since Redis 8.6.1](https://redis.io/docs/latest/commands/hotkeys-help/).
hotkeysHelp :: Command [ByteString]
hotkeysHelp = command "HOTKEYS HELP" [] (Decode.list Decode.bytes)
