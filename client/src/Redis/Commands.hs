-- | All commands, as values. Import this module qualified, or import single names: many names clash
-- with those of other modules. Complexities are those of the work on the server. A field such as
-- 'streamInfoOthers' has the fields of a reply that the record does not name.
--
-- The repository's @docs/commands.md@ lists all commands and the functions that make them.
-- In @examples/Tour@ there is a short program for each group, and the first lines of the groups'
-- modules show parts of it; the tests run it. For a command of a newer server there is 'raw', and
-- for a command of a server's module "Redis.Command.Build".
module Redis.Commands (module Commands) where

import Redis.Commands.Acl as Commands
import Redis.Commands.Array as Commands
import Redis.Commands.Bitmap as Commands
import Redis.Commands.Client as Commands
import Redis.Commands.Cluster as Commands
import Redis.Commands.ClusterAdmin as Commands
import Redis.Commands.Clusterscan as Commands
import Redis.Commands.Command as Commands
import Redis.Commands.Config as Commands
import Redis.Commands.Connection as Commands
import Redis.Commands.Function as Commands
import Redis.Commands.Geo as Commands
import Redis.Commands.Hash as Commands
import Redis.Commands.HashField as Commands
import Redis.Commands.Himport as Commands
import Redis.Commands.Hotkeys as Commands
import Redis.Commands.HyperLogLog as Commands
import Redis.Commands.Keys as Commands
import Redis.Commands.Latency as Commands
import Redis.Commands.List as Commands
import Redis.Commands.Memory as Commands
import Redis.Commands.Module as Commands
import Redis.Commands.Object as Commands
import Redis.Commands.Persistence as Commands
import Redis.Commands.Pubsub as Commands
import Redis.Commands.Raw as Commands
import Redis.Commands.Replication as Commands
import Redis.Commands.Script as Commands
import Redis.Commands.Server as Commands
import Redis.Commands.Set as Commands
import Redis.Commands.Slowlog as Commands
import Redis.Commands.Sort as Commands
import Redis.Commands.SortedSet as Commands
import Redis.Commands.SortedSetAlgebra as Commands
import Redis.Commands.SortedSetRange as Commands
import Redis.Commands.Stream as Commands
import Redis.Commands.StreamGroup as Commands
import Redis.Commands.StreamInfo as Commands
import Redis.Commands.String as Commands
import Redis.Commands.Transfer as Commands
import Redis.Commands.VectorSet as Commands
