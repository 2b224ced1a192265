module Redis.DocumentationSpec (spec) where

import Data.Set qualified as Set
import Redis.Documentation
import Redis.Internal.Protocol.CommandTable (allCommands, entryName)
import Test.Hspec

spec :: Spec
spec = describe "Redis.Documentation" $ do
  it "is there for every command of the table" $
    map docName allDocumentation `shouldBe` map entryName allCommands

  it "tells of a command that two families have since different versions" $
    lookupDocumentation "HGETDEL"
      `shouldBe` Just
        Documentation
          { docName = "HGETDEL",
            docGroup = "hash",
            docServers = ["redis-8.0", "valkey-9.1"],
            docSince = [("redis", "8.0.0"), ("valkey", "9.1.0")],
            docComplexity = "O(N) where N is the number of fields to be retrieved and deleted."
          }

  it "keeps the earliest version that a family's servers name" $
    fmap docSince (lookupDocumentation "CLIENT|PAUSE") `shouldBe` Just [("redis", "2.9.50"), ("valkey", "3.0.0")]

  it "has nothing of a command that no server documents but its name, group and servers" $
    fmap (\each -> (docGroup each, docSince each, docComplexity each)) (lookupDocumentation "VADD") `shouldBe` Just ("module", [], "")

  it "has a version wherever the server is not a module's" $
    [docName each | each <- allDocumentation, null (docSince each), docGroup each /= "module"] `shouldBe` []

  it "knows these groups" $
    Set.toList (Set.fromList (map docGroup allDocumentation))
      `shouldBe` [ "bitmap",
                   "cluster",
                   "connection",
                   "generic",
                   "geo",
                   "hash",
                   "hyperloglog",
                   "list",
                   "module",
                   "pubsub",
                   "scripting",
                   "server",
                   "set",
                   "sorted-set",
                   "stream",
                   "string",
                   "transactions"
                 ]

  it "refuses a line that it does not understand" $
    mapM_
      (\line -> parseDocumentation line `shouldBe` Nothing)
      ["", "GET", "GET string", "GET string redis-7.0", "GET string redis-7.0 1.0.0 O(1)", "GET  redis-7.0 - O(1)", "GET string redis-7.0 a:b:c O(1)"]
