-- | Modules: what a server was given besides its own commands.
--
-- > names <- map Redis.moduleName <$> run client (onNode node Redis.moduleList)
--
-- In a cluster all of these are one node's own, but for 'moduleHelp'. The commands
-- that a module brings are made with "Redis.Command.Build". The server's page:
-- <https://valkey.io/topics/modules-intro/>.
module Redis.Commands.Module
  ( moduleList,
    ModuleInfo (..),
    moduleLoad,
    moduleLoadexWith,
    ModuleLoadexOptions (moduleLoadexConfig, moduleLoadexArgs),
    moduleLoadexDefaults,
    moduleUnload,
    moduleHelp,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode

-- | A module that is loaded.
--
-- @since 0.1.0.0
data ModuleInfo = ModuleInfo
  { moduleName :: ByteString,
    -- | As the module counts.
    moduleVersion :: Int64,
    -- | Its file, since 7.0.0. Empty for one that is built in.
    modulePath :: Maybe ByteString,
    -- | What it was loaded with, since 7.0.0.
    moduleArgs :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | @MODULE LIST@. \(O(n)\) on the server, [since 4.0.0](https://valkey.io/commands/module-list/).
--
-- @since 0.1.0.0
moduleList :: Command [ModuleInfo]
moduleList = command "MODULE LIST" [] (Decode.list moduleInfo)

moduleInfo :: Decoder ModuleInfo
moduleInfo reply = do
  fields <- Decode.record reply
  moduleName <- Decode.field "name" Decode.bytes fields
  moduleVersion <- Decode.field "ver" Decode.integer fields
  modulePath <- Decode.optionalField "path" Decode.bytes fields
  arguments <- Decode.optionalField "args" (Decode.list Decode.bytes) fields
  pure ModuleInfo {moduleName, moduleVersion, modulePath, moduleArgs = concat arguments}

-- | @MODULE LOAD path argument …@: loads a module's file, on the server's own disk. Servers
-- [since 7.0](https://valkey.io/commands/module-load/) refuse it unless @enable-module-command@ is
-- set. \(O(1)\) on the server, since 4.0.0.
--
-- @since 0.1.0.0
moduleLoad :: ByteString -> [ByteString] -> Command ()
moduleLoad path arguments = command "MODULE LOAD" (arg path : args arguments) Decode.okay

-- | What a module is loaded with.
--
-- @since 0.1.0.0
data ModuleLoadexOptions = ModuleLoadexOptions
  { -- | CONFIG: settings of the module, by name.
    moduleLoadexConfig :: [(ByteString, ByteString)],
    -- | ARGS
    moduleLoadexArgs :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | Nothing.
--
-- @since 0.1.0.0
moduleLoadexDefaults :: ModuleLoadexOptions
moduleLoadexDefaults = ModuleLoadexOptions {moduleLoadexConfig = [], moduleLoadexArgs = []}

-- | @MODULE LOADEX path [CONFIG name value …] [ARGS argument …]@: as 'moduleLoad', with settings.
-- \(O(1)\) on the server, [since 7.0.0](https://valkey.io/commands/module-loadex/).
--
-- @since 0.1.0.0
moduleLoadexWith :: ModuleLoadexOptions -> ByteString -> Command ()
moduleLoadexWith ModuleLoadexOptions {moduleLoadexConfig, moduleLoadexArgs} path =
  command "MODULE LOADEX" (arg path : concatMap setting moduleLoadexConfig <> arguments) Decode.okay
  where
    setting (name, value) = [arg "CONFIG", arg name, arg value]
    -- It takes all that follows.
    arguments = if null moduleLoadexArgs then [] else arg "ARGS" : args moduleLoadexArgs

-- | @MODULE UNLOAD name@. An error if there is none of this name, or if keys hold what only it
-- understands. \(O(1)\) on the server, [since 4.0.0](https://valkey.io/commands/module-unload/).
--
-- @since 0.1.0.0
moduleUnload :: ByteString -> Command ()
moduleUnload name = command "MODULE UNLOAD" [arg name] Decode.okay

-- | @MODULE HELP@: what MODULE can do, in lines for people. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/module-help/).
--
-- @since 0.1.0.0
moduleHelp :: Command [ByteString]
moduleHelp = command "MODULE HELP" [] (Decode.list Decode.bytes)
