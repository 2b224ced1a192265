-- | The flags with which the runtime of our own peer really runs, wherever they were set.
module Compare.Ours.Runtime
  ( runtimeFlags,
    flagsText,
  )
where

import Control.Concurrent (getNumCapabilities, rtsSupportsBoundThreads)
import GHC.RTS.Flags (GCFlags (..), getGCFlags)

-- | The flags of this process.
runtimeFlags :: IO String
runtimeFlags = flagsText rtsSupportsBoundThreads <$> getNumCapabilities <*> getGCFlags

-- | The flags as a user would type them, given whether the runtime is the threaded one, and the
-- number of capabilities.
flagsText :: Bool -> Int -> GCFlags -> String
flagsText threaded capabilities flags =
  unwords . concat $
    [ ["-threaded" | threaded],
      ["-N" <> show capabilities, "-A" <> allocation],
      ["-I0" | not (doIdleGC flags)]
    ]
  where
    -- The runtime counts blocks of 4 KiB.
    kibibytes = 4 * minAllocAreaSize flags
    allocation = case kibibytes `divMod` 1024 of
      (mebibytes, 0) -> show mebibytes <> "m"
      _ -> show kibibytes <> "k"
