-- | The service. Its settings are environment variables; see the contract.
module Service (main) where

import Rest.Serve (serve)
import Rest.Settings (settingsFromEnvironment)

main :: IO ()
main = settingsFromEnvironment >>= serve
