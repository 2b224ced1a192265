-- | The client in clusters: real ones, and fake nodes whose replies real ones do not send on
-- demand.
--
-- The list below says what a correct cluster client does, and names the test that shows it: for
-- this suite by module and by words of the test's name. @unit@ and @property@ are the suites of the
-- parts that need no server.
--
-- Keys and slots
--
-- [CRC16, hash tags and their vectors] @property@: SlotSpec.
-- [Key positions from key specs, unknown commands by the server] @unit@:
--   KeySpecSpec; @integration@: KeysLiveSpec; LiveSpec: routes commands by where
--   their keys are. UnknownCommandSpec.
-- [Split only where semantics allow, reassembled in order, else refused locally]
--   LiveSpec: splits MGET; refuses keys of several slots. SlotCacheSpec: a split
--   write of which a part failed.
--
-- The slot map
--
-- [Full map from any seed, partial map legal] SlotCacheSpec: comes from one seed
--   that answers; may lack slots; that lacks a slot is asked for. LiveSpec:
--   starts with dead seeds.
-- [NULL, empty and unknown hosts, names, IPv6, metadata, SLOTS and SHARDS]
--   SlotCacheSpec: takes a host; takes an IPv6 host; comes from CLUSTER SLOTS;
--   @property@: ClusterReplySpec. TLS ports: LiveSpec: is used over TLS.
-- [Triggers] RedirectSpec: an error that says not now; to an unknown host; from a
--   replica; a connection lost after a write. LookingSpec: a subscription to a shard
--   channel. Time-outs, the periodic check:
--   @property@: HealthSpec, TopologySpec.
-- [One refresh at a time, least interval] RedirectSpec: asks for the map once at a
--   time. LiveSpec: loses and doubles nothing while slots move. @property@:
--   TopologySpec.
-- [The redirected command never waits for a refresh] RedirectSpec: does not keep the
--   redirected command waiting.
-- [Several nodes asked, agreement, time-boxed] SlotCacheSpec: is what most nodes
--   say; is learnt again while a known node hangs.
-- [MOVED applied at once, not undone by an older map] RedirectSpec: is followed to
--   the named node; is not undone.
-- [One atomic snapshot] @property@: SlotMapSpec, TopologySpec.
-- [Back to the seeds] SlotCacheSpec: when all its nodes are gone.
--
-- Redirects
--
-- [MOVED to the named node, empty host, same endpoint, nothing trusted]
--   RedirectSpec: MOVED.
-- [ASK: ASKING adjacent, its error consumed, TRYAGAIN back at the source]
--   RedirectSpec: ASK. LiveSpec: a command over a half-moved slot waits.
-- [Bounds, backoff, trail] RedirectSpec: ends within the bounds; attempts together.
-- [Refusals are not executions] RedirectSpec: is followed by a write that must not
--   run twice.
--
-- Other errors
--
-- [TRYAGAIN, CLUSTERDOWN, LOADING, MASTERDOWN, READONLY] RedirectSpec: an error that
--   says not now.
-- [BUSY, OOM, MISCONF, NOREPLICAS] RedirectSpec: is the caller's, at once.
-- [NOAUTH, WRONGPASS] RedirectSpec: NOAUTH in mid-life.
-- [Lost after the write, lost before] RedirectSpec: a connection lost. @property@:
--   RetrySpec.
-- [Waiters that give up meanwhile] WaitersSpec.
-- [CROSSSLOT from a server] RedirectSpec: names the command.
--
-- Nodes and fail-over
--
-- [Isolation] LiveSpec: a frozen primary does not hold up.
-- [Silent peers, backoff, handshake deadline] the suites of connections.
-- [Removed nodes] SlotCacheSpec: a node that it no longer has; nodes that only a
--   redirect named. LiveSpec: uses a node that joins, and closes.
-- [Changes of role] LiveSpec: follows a planned fail-over; goes on when a primary is
--   killed.
-- [Scripts by their digests] ScriptsSpec.
-- [Redirects and retries are counted and reported] ObservedSpec.
-- [Reads from replicas] LiveSpec: reads from replicas. RedirectSpec: from a replica;
--   the primary answers. ReplicaReadsSpec: nothing that blocks, scripts by EVAL_RO
--   and FCALL_RO only. ReadingSpec: by zone, by latency, by the command; replicas that
--   hang, die, or become primaries. @property@: ReadersSpec.
-- [Addresses mapped] MappingSpec. [Databases] DatabasesSpec.
-- [Credentials] RotationSpec: replaced node by node; expiring, through a fail-over.
module Main (main) where

import BeliefSpec qualified
import CacheSpec qualified
import CommandsSpec qualified
import DatabasesSpec qualified
import GroupSpec qualified
import LentSpec qualified
import LiveSpec qualified
import LookingSpec qualified
import MappingSpec qualified
import ObservedSpec qualified
import PolicySpec qualified
import ReadingSpec qualified
import RedirectSpec qualified
import RefusedSpec qualified
import ReplicaReadsSpec qualified
import ResendSpec qualified
import RotationSpec qualified
import ScanSpec qualified
import ScriptsSpec qualified
import SentinelSpec qualified
import SlotCacheSpec qualified
import SubscriptionSpec qualified
import Test.Hspec (hspec)
import TogetherSpec qualified
import TransactionSpec qualified
import UnknownCommandSpec qualified
import WaitersSpec qualified

main :: IO ()
main = hspec $ do
  PolicySpec.spec
  RedirectSpec.spec
  RefusedSpec.spec
  ReplicaReadsSpec.spec
  ReadingSpec.spec
  MappingSpec.spec
  DatabasesSpec.spec
  RotationSpec.spec
  ResendSpec.spec
  ScriptsSpec.spec
  SlotCacheSpec.spec
  UnknownCommandSpec.spec
  TogetherSpec.spec
  WaitersSpec.spec
  LookingSpec.spec
  ObservedSpec.spec
  LentSpec.spec
  CommandsSpec.spec
  CacheSpec.spec
  TransactionSpec.spec
  SubscriptionSpec.spec
  LiveSpec.spec
  GroupSpec.spec
  BeliefSpec.spec
  SentinelSpec.spec
  ScanSpec.spec
