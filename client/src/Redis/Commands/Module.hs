-- | Modules: extensions that a server has loaded.
--
-- > names <- map Redis.moduleName <$> run client (onNode node Redis.moduleList)
--
-- Each of these commands concerns one node, except 'moduleHelp'; in a cluster, name the node. Use
-- "Redis.Command.Build" to make the commands that a module adds. The server's documentation:
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

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | A module that is loaded.
data ModuleInfo = ModuleInfo
  { moduleName :: ByteString,
    -- | The version, as the module itself numbers it.
    moduleVersion :: Int64,
    -- | The path of its file, since 7.0.0. Empty for a module that is built in.
    modulePath :: Maybe ByteString,
    -- | The arguments with which it was loaded, since 7.0.0.
    moduleArgs :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | @MODULE LIST@: the modules that are loaded. \(O(n)\),
-- [since 4.0.0](https://valkey.io/commands/module-list/).
moduleList :: Command [ModuleInfo]
moduleList =
  command "MODULE LIST" [] . Decode.list . recordOf $
    ModuleInfo
      <$> field "name" Decode.bytes
      <*> field "ver" Decode.integer
      <*> optionalField "path" Decode.bytes
      <*> several "args" (Decode.list Decode.bytes)

-- | @MODULE LOAD path argument …@: loads a module from a file on the server's own disk. Servers
-- [since 7.0](https://valkey.io/commands/module-load/) refuse it unless @enable-module-command@ is
-- set. \(O(1)\), since 4.0.0.
moduleLoad :: ByteString -> [ByteString] -> Command ()
moduleLoad path arguments = command "MODULE LOAD" (arg path : args arguments) Decode.okay

-- | The settings and arguments for a module.
data ModuleLoadexOptions = ModuleLoadexOptions
  { -- | CONFIG: settings of the module, by name.
    moduleLoadexConfig :: [(ByteString, ByteString)],
    -- | ARGS: arguments for the module.
    moduleLoadexArgs :: [ByteString]
  }
  deriving stock (Eq, Show)

-- | No settings and no arguments.
moduleLoadexDefaults :: ModuleLoadexOptions
moduleLoadexDefaults = ModuleLoadexOptions {moduleLoadexConfig = [], moduleLoadexArgs = []}

-- | @MODULE LOADEX path [CONFIG name value …] [ARGS argument …]@: like 'moduleLoad', with settings.
-- \(O(1)\), [since 7.0.0](https://valkey.io/commands/module-loadex/).
moduleLoadexWith :: ModuleLoadexOptions -> ByteString -> Command ()
moduleLoadexWith ModuleLoadexOptions {moduleLoadexConfig, moduleLoadexArgs} path =
  command "MODULE LOADEX" (arg path : concatMap setting moduleLoadexConfig <> arguments) Decode.okay
  where
    setting (name, value) = [arg "CONFIG", arg name, arg value]
    -- ARGS takes all words that follow it, so it comes last.
    arguments = if null moduleLoadexArgs then [] else arg "ARGS" : args moduleLoadexArgs

-- | @MODULE UNLOAD name@: unloads a module. An error if there is none of this name, or if it cannot
-- be unloaded, for example because it defines types of values. \(O(1)\),
-- [since 4.0.0](https://valkey.io/commands/module-unload/).
moduleUnload :: ByteString -> Command ()
moduleUnload name = command "MODULE UNLOAD" [arg name] Decode.okay

-- | @MODULE HELP@: the server's help. \(O(1)\), [since 5.0.0](https://valkey.io/commands/module-help/).
moduleHelp :: Command [ByteString]
moduleHelp = command "MODULE HELP" [] (Decode.list Decode.bytes)
