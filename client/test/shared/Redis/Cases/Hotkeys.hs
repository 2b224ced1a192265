module Redis.Cases.Hotkeys (hotkeysCases) where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.CommandCase
import Redis.Commands.Cluster (SlotRange (..))
import Redis.Commands.Hotkeys
import Redis.Duration

-- | The server measures on after a case, so each case stops it first.
hotkeysCases :: [Case]
hotkeysCases =
  [ after fresh "hotkeysStart" (hotkeysStart HotkeysCpu) ["HOTKEYS", "START", "METRICS", "1", "CPU"] (Gives ()),
    after
      (fresh <> [["HOTKEYS", "START", "METRICS", "1", "NET"]])
      "hotkeysStart"
      (hotkeysStart HotkeysNet)
      ["HOTKEYS", "START", "METRICS", "1", "NET"]
      (Fails "ERR"),
    after
      fresh
      "hotkeysStartWith"
      (hotkeysStartWith hotkeysStartDefaults {hotkeysStartCount = Just 5, hotkeysStartDuration = Just (seconds 1.5), hotkeysStartSample = Just 3} HotkeysCpuAndNet)
      ["HOTKEYS", "START", "METRICS", "2", "CPU", "NET", "COUNT", "5", "DURATION", "2", "SAMPLE", "3"]
      (Gives ()),
    -- A server that is no cluster refuses slots.
    after
      fresh
      "hotkeysStartWith"
      (hotkeysStartWith hotkeysStartDefaults {hotkeysStartSlots = Just (5 :| [7])} HotkeysNet)
      ["HOTKEYS", "START", "METRICS", "1", "NET", "SLOTS", "2", "5", "7"]
      (Fails "ERR"),
    after (fresh <> [["HOTKEYS", "START", "METRICS", "1", "NET"]]) "hotkeysStop" hotkeysStop ["HOTKEYS", "STOP"] (Gives True),
    after fresh "hotkeysStop" hotkeysStop ["HOTKEYS", "STOP"] (Gives False),
    after fresh "hotkeysReset" hotkeysReset ["HOTKEYS", "RESET"] (Gives ()),
    after fresh "hotkeysGet" hotkeysGet ["HOTKEYS", "GET"] (Gives Nothing),
    after
      (fresh <> [["HOTKEYS", "START", "METRICS", "2", "CPU", "NET"], ["SET", "k", "v"]])
      "hotkeysGet"
      hotkeysGet
      ["HOTKEYS", "GET"]
      ( Such "names the key that was set" $ \case
          Nothing -> False
          Just found ->
            hotkeysActive found
              && hotkeysSampleRatio found == 1
              && hotkeysSelectedSlots found == [SlotRange 0 16383]
              && hotkeysCollectionStart found > posixSecondsToUTCTime 1600000000
              && hotkeysCollectionDuration found < minutes 1
              && hotkeysAllCommandsTime found < minutes 1
              && map fst (hotkeysByCpuTime found) == ["k"]
              && map fst (hotkeysByNetBytes found) == ["k"]
              && hotkeysAllCommandsNetBytes found >= sum (map snd (hotkeysByNetBytes found))
      ),
    after
      (fresh <> [["HOTKEYS", "START", "METRICS", "1", "NET"]])
      "hotkeysGet"
      hotkeysGet
      ["HOTKEYS", "GET"]
      (Such "knows nothing of times" (maybe False (null . hotkeysByCpuTime))),
    onEmpty "hotkeysHelp" hotkeysHelp ["HOTKEYS", "HELP"] (Such "are some lines" ((> 5) . length))
  ]

fresh :: [[ByteString]]
fresh = [["HOTKEYS", "STOP"], ["HOTKEYS", "RESET"]]
