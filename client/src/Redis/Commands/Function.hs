-- | Functions: programs that are loaded into the server once, as libraries, and called by their
-- names. The server keeps them as it keeps keys: replicas have them, too.
--
-- > run client (Redis.functionLoadWith Redis.functionLoadDefaults {Redis.functionLoadReplace = True} library)
-- > run client (Redis.fcall "example_add" ["example:scripts"] ["5"] `decodedBy` Decode.integer)
--
-- A call takes keys and other arguments; in a cluster the keys must share a slot. The result is
-- whatever the function returns: see 'Redis.Command.decodedBy'. A function that fails half-way does
-- not undo what it did.
--
-- In a cluster each primary has libraries of its own. Commands that change them run on every
-- primary. Commands that read them need the name of a node ('Redis.Command.onNode',
-- 'Redis.Command.onEvery') and are refused without it.
--
-- The servers' pages: <https://valkey.io/commands/#scripting>,
-- <https://redis.io/docs/latest/commands/?group=scripting>.
module Redis.Commands.Function
  ( -- * Calling
    fcall,
    fcallRo,
    functionKill,
    functionStats,
    FunctionStats (..),
    RunningFunction (..),
    FunctionEngine (..),

    -- * Libraries
    functionLoad,
    functionLoadWith,
    FunctionLoadOptions (functionLoadReplace),
    functionLoadDefaults,
    functionDelete,
    functionFlush,
    functionFlushWith,
    functionList,
    functionListWith,
    FunctionListOptions (functionListLibraryname, functionListWithcode),
    functionListDefaults,
    FunctionLibrary (..),
    FunctionInfo (..),

    -- * Dump and restore
    functionDump,
    functionRestore,
    functionRestoreWith,
    FunctionRestoreOptions (functionRestorePolicy),
    functionRestoreDefaults,
    FunctionRestorePolicy (..),

    -- * Help
    functionHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @FCALL function numkeys key … argument …@: calls a function; its result. @FCALL_RO …@ calls one
-- that is registered as writing nothing; it may run on a replica and may be sent again. Costs what
-- the function costs; since 7.0.0 ([FCALL](https://valkey.io/commands/fcall/),
-- [FCALL_RO](https://valkey.io/commands/fcall_ro/)).
--
-- In a cluster the call goes to the node of its keys. Without keys it goes to any primary: give it
-- a key, or name the node ('Redis.Command.onNode').
fcall, fcallRo :: ByteString -> [ByteString] -> [ByteString] -> Command Value
fcall = program "FCALL"
fcallRo = program "FCALL_RO"

-- | @FUNCTION KILL@: ends the running function, unless it has written; an error if none runs. It
-- does not wait behind the function. In a cluster it goes to every primary, and succeeds if one of
-- them ran a function; replicas are left out (see 'Redis.Commands.Script.scriptKill'). \(O(1)\),
-- [since 7.0.0](https://valkey.io/commands/function-kill/).
functionKill :: Command ()
functionKill = command "FUNCTION KILL" [] Decode.okay

-- | @FUNCTION STATS@: the running function, and how many libraries and functions there are. It does
-- not wait behind a running function; while a script of EVAL runs, the server says @BUSY@.
-- \(O(1)\), [since 7.0.0](https://valkey.io/commands/function-stats/).
functionStats :: Command FunctionStats
functionStats =
  command "FUNCTION STATS" [] . recordOf $
    FunctionStats
      <$> field "running_script" (Decode.nullable running)
      <*> field "engines" (fmap (map engine) . Decode.pairs Decode.bytes (recordOf counts))
  where
    counts = (,) <$> field "libraries_count" Decode.integer <*> field "functions_count" Decode.integer
    engine (name, (libraries, functions)) = FunctionEngine name libraries functions

-- | The running function, and an entry for each engine.
data FunctionStats = FunctionStats
  { functionRunning :: Maybe RunningFunction,
    functionEngines :: [FunctionEngine]
  }
  deriving stock (Eq, Show)

-- | A call that has not ended.
data RunningFunction = RunningFunction
  { runningName :: ByteString,
    -- | The words of the command that called it.
    runningCommand :: [ByteString],
    -- | For how long it has run.
    runningDuration :: Duration
  }
  deriving stock (Eq, Show)

-- | A language of functions, with its numbers of libraries and functions.
data FunctionEngine = FunctionEngine
  { -- | Such as @LUA@.
    engineName :: ByteString,
    engineLibraries :: Int64,
    engineFunctions :: Int64
  }
  deriving stock (Eq, Show)

running :: Decoder RunningFunction
running =
  recordOf $
    RunningFunction
      <$> field "name" Decode.bytes
      <*> field "command" (Decode.list Decode.bytes)
      <*> field "duration_ms" millisecondsReply

-- | @FUNCTION LOAD code@: loads a library; its name, which must be new. \(O(1)\),
-- [since 7.0.0](https://valkey.io/commands/function-load/).
functionLoad :: ByteString -> Command ByteString
functionLoad = functionLoadWith functionLoadDefaults

-- | How to load a library.
newtype FunctionLoadOptions = FunctionLoadOptions
  { -- | REPLACE: replaces a library of that name, which otherwise is an error.
    functionLoadReplace :: Bool
  }
  deriving stock (Eq, Show)

-- | Replaces nothing.
functionLoadDefaults :: FunctionLoadOptions
functionLoadDefaults = FunctionLoadOptions {functionLoadReplace = False}

-- | @FUNCTION LOAD [REPLACE] code@: like 'functionLoad'.
functionLoadWith :: FunctionLoadOptions -> ByteString -> Command ByteString
functionLoadWith FunctionLoadOptions {functionLoadReplace} code =
  command "FUNCTION LOAD" (flag "REPLACE" functionLoadReplace <> [arg code]) Decode.bytes

-- | @FUNCTION DELETE library@: deletes a library and its functions; an error if there is none of
-- that name. \(O(1)\), [since 7.0.0](https://valkey.io/commands/function-delete/).
functionDelete :: ByteString -> Command ()
functionDelete library = command "FUNCTION DELETE" [arg library] Decode.okay

-- | @FUNCTION FLUSH@: deletes all libraries. \(O(n)\) in functions,
-- [since 7.0.0](https://valkey.io/commands/function-flush/).
functionFlush :: Command ()
functionFlush = functionFlushWith flushDefaults

-- | @FUNCTION FLUSH [SYNC|ASYNC]@: like 'functionFlush'.
functionFlushWith :: FlushOptions -> Command ()
functionFlushWith options = command "FUNCTION FLUSH" (flushArguments options) Decode.okay

-- | @FUNCTION LIST@: all libraries, without their code. \(O(n)\) in functions,
-- [since 7.0.0](https://valkey.io/commands/function-list/).
functionList :: Command [FunctionLibrary]
functionList = functionListWith functionListDefaults

-- | Which libraries to list, and whether with their code.
data FunctionListOptions = FunctionListOptions
  { -- | LIBRARYNAME: only libraries whose names match the glob.
    functionListLibraryname :: Maybe ByteString,
    -- | WITHCODE: with their code.
    functionListWithcode :: Bool
  }
  deriving stock (Eq, Show)

-- | All libraries, without their code.
functionListDefaults :: FunctionListOptions
functionListDefaults = FunctionListOptions {functionListLibraryname = Nothing, functionListWithcode = False}

-- | @FUNCTION LIST [LIBRARYNAME glob] [WITHCODE]@: like 'functionList'.
functionListWith :: FunctionListOptions -> Command [FunctionLibrary]
functionListWith FunctionListOptions {functionListLibraryname, functionListWithcode} =
  command
    "FUNCTION LIST"
    (option "LIBRARYNAME" arg functionListLibraryname <> flag "WITHCODE" functionListWithcode)
    (Decode.list libraryInfo)

-- | A library of functions.
data FunctionLibrary = FunctionLibrary
  { libraryName :: ByteString,
    -- | Its language, such as @LUA@.
    libraryEngine :: ByteString,
    libraryFunctions :: [FunctionInfo],
    -- | The code, if the command requested it.
    libraryCode :: Maybe ByteString,
    libraryOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | A function of a library.
data FunctionInfo = FunctionInfo
  { functionName :: ByteString,
    functionDescription :: Maybe ByteString,
    -- | Such as @no-writes@.
    functionFlags :: [ByteString],
    functionOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

libraryInfo :: Decoder FunctionLibrary
libraryInfo =
  recordOf $
    FunctionLibrary
      <$> field "library_name" Decode.bytes
      <*> field "engine" Decode.bytes
      <*> field "functions" (Decode.list functionInfo)
      <*> optionalField "library_code" Decode.bytes
      <*> others Decode.value

functionInfo :: Decoder FunctionInfo
functionInfo =
  recordOf $
    FunctionInfo
      <$> field "name" Decode.bytes
      <*> field "description" (Decode.nullable Decode.bytes)
      <*> field "flags" (Decode.list Decode.bytes)
      <*> others Decode.value

-- | @FUNCTION DUMP@: all libraries in the server's own form, for 'functionRestore'. \(O(n)\) in
-- functions, [since 7.0.0](https://valkey.io/commands/function-dump/).
functionDump :: Command ByteString
functionDump = command "FUNCTION DUMP" [] Decode.bytes

-- | @FUNCTION RESTORE payload@: adds the libraries that 'functionDump' gave. If one of them is
-- there already, it is an error, and nothing is added. \(O(n)\) in functions,
-- [since 7.0.0](https://valkey.io/commands/function-restore/).
functionRestore :: ByteString -> Command ()
functionRestore = functionRestoreWith functionRestoreDefaults

-- | How to restore libraries.
newtype FunctionRestoreOptions = FunctionRestoreOptions
  { functionRestorePolicy :: FunctionRestorePolicy
  }
  deriving stock (Eq, Show)

-- | What happens to the libraries that are there.
data FunctionRestorePolicy
  = -- | APPEND: they stay; a new library of the same name is an error.
    AppendLibraries
  | -- | REPLACE: a new library replaces the one of the same name.
    ReplaceLibraries
  | -- | FLUSH: all of them are deleted.
    FlushLibraries
  deriving stock (Eq, Show)

-- | The libraries that are there stay.
functionRestoreDefaults :: FunctionRestoreOptions
functionRestoreDefaults = FunctionRestoreOptions {functionRestorePolicy = AppendLibraries}

-- | @FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE]@: like 'functionRestore'.
functionRestoreWith :: FunctionRestoreOptions -> ByteString -> Command ()
functionRestoreWith FunctionRestoreOptions {functionRestorePolicy} payload =
  command "FUNCTION RESTORE" (arg payload : policy) Decode.okay
  where
    policy = case functionRestorePolicy of
      -- The server's default.
      AppendLibraries -> []
      ReplaceLibraries -> [arg "REPLACE"]
      FlushLibraries -> [arg "FLUSH"]

-- | @FUNCTION HELP@: the server's help. \(O(1)\),
-- [since 7.0.0](https://valkey.io/commands/function-help/).
functionHelp :: Command [ByteString]
functionHelp = command "FUNCTION HELP" [] (Decode.list Decode.bytes)
