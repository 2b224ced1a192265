-- | With which flags the runtime of our own peer really runs, whoever set them.
module Compare.Ours.Runtime
  ( runtimeFlags,
    flagsText,
  )
where

import Control.Concurrent (getNumCapabilities, rtsSupportsBoundThreads)
import GHC.RTS.Flags (GCFlags (..), getGCFlags)

-- | Those of this process.
runtimeFlags :: IO String
runtimeFlags = flagsText rtsSupportsBoundThreads <$> getNumCapabilities <*> getGCFlags

-- | As they would be typed, from whether the runtime is the threaded one, and
-- its capabilities.
flagsText :: Bool -> Int -> GCFlags -> String
flagsText threaded capabilities flags =
  unwords . concat $
    [ ["-threaded" | threaded],
      ["-N" <> show capabilities, "-A" <> allocation],
      ["-I0" | not (doIdleGC flags)]
    ]
  where
    -- The runtime counts in blocks of 4 KiB.
    kibibytes = 4 * minAllocAreaSize flags
    allocation = case kibibytes `divMod` 1024 of
      (mebibytes, 0) -> show mebibytes <> "m"
      _ -> show kibibytes <> "k"
