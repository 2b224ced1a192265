module Redis.Cases.VectorSet (vectorSetCases) where

import Data.ByteString (ByteString)
import Data.Primitive.PrimArray (PrimArray, primArrayFromList, primArrayToList)
import Redis.CommandCase
import Redis.Commands.VectorSet

vectorSetCases :: [Case]
vectorSetCases = adding <> searching <> elements <> sets

adding :: [Case]
adding =
  [ onEmpty "vadd" (vadd "k" "a" (embeddingOf [1, 0.5])) ["VADD", "k", "FP32", oneHalf, "a"] (Gives True),
    after points "vadd" (vadd "k" "a" (EmbeddingBytes oneHalf)) ["VADD", "k", "FP32", oneHalf, "a"] (Gives False),
    after points "vadd" (vadd "k" "z" (numbers [1, 0.5])) ["VADD", "k", "VALUES", "2", "1.0", "0.5", "z"] (Gives True),
    after points "vadd" (vadd "k" "z" (embeddingOf [1])) ["VADD", "k", "FP32", "\0\0\x80\x3f", "z"] (Fails "ERR"),
    onEmpty "vadd" (vadd "k" "z" (numbers [1, 0 / 0])) ["VADD", "k", "VALUES", "2", "1.0", "nan", "z"] Unfit,
    onEmpty
      "vaddWith"
      ( vaddWith
          vaddDefaults
            { vaddReduce = Just 2,
              vaddCas = True,
              vaddQuantisation = Just QuantisationNone,
              vaddEf = Just 100,
              vaddSetattr = Just "{\"x\":1}",
              vaddM = Just 8
            }
          "k"
          "a"
          (numbers [1, 2, 3])
      )
      ["VADD", "k", "REDUCE", "2", "VALUES", "3", "1.0", "2.0", "3.0", "a", "CAS", "NOQUANT", "EF", "100", "SETATTR", "{\"x\":1}", "M", "8"]
      (Gives True),
    onEmpty
      "vaddWith"
      (vaddWith vaddDefaults {vaddQuantisation = Just QuantisationQ8} "k" "a" (numbers [1, 2]))
      ["VADD", "k", "VALUES", "2", "1.0", "2.0", "a", "Q8"]
      (Gives True),
    onEmpty
      "vaddWith"
      (vaddWith vaddDefaults {vaddQuantisation = Just QuantisationBin} "k" "a" (numbers [1, 2]))
      ["VADD", "k", "VALUES", "2", "1.0", "2.0", "a", "BIN"]
      (Gives True),
    after points "vrem" (vrem "k" "a") ["VREM", "k", "a"] (Gives True),
    after points "vrem" (vrem "k" "z") ["VREM", "k", "z"] (Gives False)
  ]

searching :: [Case]
searching =
  [ after points "vsim" (vsim "k" (VsimElement "a")) ["VSIM", "k", "ELE", "a"] (Gives ["a", "b", "c", "d"]),
    after points "vsim" (vsim "k" (VsimElement "z")) ["VSIM", "k", "ELE", "z"] (Fails "ERR"),
    onEmpty "vsim" (vsim "k" (VsimElement "z")) ["VSIM", "k", "ELE", "z"] (Gives []),
    after points "vsim" (vsim "k" (VsimVector (EmbeddingBytes oneHalf))) ["VSIM", "k", "FP32", oneHalf] (Such "begins with b" ((== ["b"]) . take 1)),
    after
      points
      "vsimWith"
      ( vsimWith
          vsimDefaults
            { vsimCount = Just 3,
              vsimEpsilon = Just 0.75,
              vsimEf = Just 50,
              vsimFilter = Just ".x > 1",
              vsimFilterEf = Just 20,
              vsimTruth = True,
              vsimNothread = True
            }
          "k"
          (VsimVector (numbers [0, 1]))
      )
      ["VSIM", "k", "VALUES", "2", "0.0", "1.0", "COUNT", "3", "EPSILON", "0.75", "EF", "50", "FILTER", ".x > 1", "FILTER-EF", "20", "TRUTH", "NOTHREAD"]
      (Gives ["b"]),
    after
      points
      "vsimWithscores"
      (vsimWithscores "k" (VsimVector (numbers [2, 0])))
      ["VSIM", "k", "VALUES", "2", "2.0", "0.0", "WITHSCORES"]
      (Such "has the scores of half a turn" (\found -> map fst found == ["a", "b", "c", "d"] && near [1, 0.853, 0.5, 0] (map snd found))),
    onEmpty "vsimWithscores" (vsimWithscores "k" (VsimElement "z")) ["VSIM", "k", "ELE", "z", "WITHSCORES"] (Gives []),
    after
      points
      "vsimWithscoresWith"
      (vsimWithscoresWith vsimDefaults {vsimCount = Just 1} "k" (VsimElement "c"))
      ["VSIM", "k", "ELE", "c", "WITHSCORES", "COUNT", "1"]
      (Such "is c" ((== ["c"]) . map fst)),
    needs [(IsRedis, (8, 2))] $
      after
        points
        "vsimWithattribs"
        (vsimWithattribs "k" (VsimElement "b"))
        ["VSIM", "k", "ELE", "b", "WITHSCORES", "WITHATTRIBS"]
        ( Such "begins with b and its attributes; d has none" $ \found ->
            [(vsimMatchElement one, vsimMatchAttributes one) | one <- take 1 found] == [("b", Just "{\"x\":2}")]
              && [vsimMatchAttributes one | one <- found, vsimMatchElement one == "d"] == [Nothing]
              && near [1] (map vsimMatchScore (take 1 found))
        ),
    onEmpty "vsimWithattribs" (vsimWithattribs "k" (VsimElement "b")) ["VSIM", "k", "ELE", "b", "WITHSCORES", "WITHATTRIBS"] (Gives []),
    needs [(IsRedis, (8, 2))] $
      after
        points
        "vsimWithattribsWith"
        (vsimWithattribsWith vsimDefaults {vsimFilter = Just ".x == 1"} "k" (VsimElement "b"))
        ["VSIM", "k", "ELE", "b", "WITHSCORES", "WITHATTRIBS", "FILTER", ".x == 1"]
        (Such "is a" ((== ["a"]) . map vsimMatchElement))
  ]

elements :: [Case]
elements =
  [ after points "vemb" (vemb "k" "c") ["VEMB", "k", "c"] (Such "is almost (0, 1)" (maybe False (near [0, 1] . doubles))),
    after points "vemb" (vemb "k" "z") ["VEMB", "k", "z"] (Gives Nothing),
    onEmpty "vemb" (vemb "k" "z") ["VEMB", "k", "z"] (Gives Nothing),
    after
      points
      "vembRaw"
      (vembRaw "k" "c")
      ["VEMB", "k", "c", "RAW"]
      (Such "is of eight bits, of length 1" (maybe False (\raw -> rawEmbeddingType raw == "int8" && rawEmbeddingBytes raw == "\0\x7f" && near [1, 1] [rawEmbeddingNorm raw, sum (rawEmbeddingRange raw)]))),
    after
      [["VADD", "k", "VALUES", "2", "0", "3", "c", "NOQUANT"]]
      "vembRaw"
      (vembRaw "k" "c")
      ["VEMB", "k", "c", "RAW"]
      (Gives (Just (RawEmbedding "f32" "\0\0\0\0\0\0\x80\x3f" 3 Nothing))),
    onEmpty "vembRaw" (vembRaw "k" "z") ["VEMB", "k", "z", "RAW"] (Gives Nothing),
    after points "vgetattr" (vgetattr "k" "a") ["VGETATTR", "k", "a"] (Gives (Just "{\"x\":1}")),
    after points "vgetattr" (vgetattr "k" "d") ["VGETATTR", "k", "d"] (Gives Nothing),
    after points "vsetattr" (vsetattr "k" "a" "") ["VSETATTR", "k", "a", ""] (Gives True),
    after points "vsetattr" (vsetattr "k" "z" "{}") ["VSETATTR", "k", "z", "{}"] (Gives False),
    after points "vismember" (vismember "k" "a") ["VISMEMBER", "k", "a"] (Gives True),
    onEmpty "vismember" (vismember "k" "a") ["VISMEMBER", "k", "a"] (Gives False),
    after two "vlinks" (vlinks "k" "a") ["VLINKS", "k", "a"] (Such "has b in the lowest layer" (maybe False (\layers -> take 1 (reverse layers) == [["b"]]))),
    after two "vlinks" (vlinks "k" "z") ["VLINKS", "k", "z"] (Gives Nothing),
    after
      two
      "vlinksWithscores"
      (vlinksWithscores "k" "a")
      ["VLINKS", "k", "a", "WITHSCORES"]
      (Such "has b at a right angle" (maybe False (\layers -> concatMap (map fst) (take 1 (reverse layers)) == ["b"] && near [0.5] (concatMap (map snd) (take 1 (reverse layers))))))
  ]
  where
    two = [["VADD", "k", "VALUES", "2", "1", "0", "a"], ["VADD", "k", "VALUES", "2", "0", "1", "b"]]

sets :: [Case]
sets =
  [ after points "vcard" (vcard "k") ["VCARD", "k"] (Gives 4),
    onEmpty "vcard" (vcard "k") ["VCARD", "k"] (Gives 0),
    after points "vdim" (vdim "k") ["VDIM", "k"] (Gives 2),
    onEmpty "vdim" (vdim "k") ["VDIM", "k"] (Fails "ERR"),
    after
      points
      "vinfo"
      (vinfo "k")
      ["VINFO", "k"]
      ( Such "is of four points in a plane" $ \case
          Nothing -> False
          Just found ->
            (vectorSetInfoQuantType found, vectorSetInfoHnswM found, vectorSetInfoVectorDim found) == ("int8", 16, 2)
              && (vectorSetInfoProjectionInputDim found, vectorSetInfoSize found, vectorSetInfoAttributesCount found) == (Nothing, 4, 2)
              && vectorSetInfoMaxLevel found >= 0
      ),
    after
      [["VADD", "k", "REDUCE", "2", "VALUES", "3", "1", "2", "3", "a"]]
      "vinfo"
      (vinfo "k")
      ["VINFO", "k"]
      (Such "is of vectors with three numbers, made two" (maybe False (\found -> (vectorSetInfoVectorDim found, vectorSetInfoProjectionInputDim found) == (2, Just 3)))),
    onEmpty "vinfo" (vinfo "k") ["VINFO", "k"] (Gives Nothing),
    after [["VADD", "k", "VALUES", "1", "1", "a"]] "vrandmember" (vrandmember "k") ["VRANDMEMBER", "k"] (Gives (Just "a")),
    onEmpty "vrandmember" (vrandmember "k") ["VRANDMEMBER", "k"] (Gives Nothing),
    after points "vrandmemberCount" (vrandmemberCount "k" (Distinct 9)) ["VRANDMEMBER", "k", "9"] (Such "are all four" ((== 4) . length)),
    after points "vrandmemberCount" (vrandmemberCount "k" (Repeated 9)) ["VRANDMEMBER", "k", "-9"] (Such "are nine" ((== 9) . length)),
    onEmpty "vrandmemberCount" (vrandmemberCount "k" (Distinct 9)) ["VRANDMEMBER", "k", "9"] (Gives []),
    after points "vrange" (vrange "k" LexLowest LexHighest) ["VRANGE", "k", "-", "+"] (Gives ["a", "b", "c", "d"]),
    after points "vrange" (vrange "k" (LexExclusive "a") (LexInclusive "c")) ["VRANGE", "k", "(a", "[c"] (Gives ["b", "c"]),
    after
      points
      "vrangeWith"
      (vrangeWith vrangeDefaults {vrangeCount = Just 2} "k" LexLowest LexHighest)
      ["VRANGE", "k", "-", "+", "2"]
      (Gives ["a", "b"])
  ]

-- | A quarter of a turn after the other, but for b, which is half-way between a and c.
points :: [[ByteString]]
points =
  [ ["VADD", "k", "VALUES", "2", "1", "0", "a", "SETATTR", "{\"x\":1}"],
    ["VADD", "k", "VALUES", "2", "1", "1", "b", "SETATTR", "{\"x\":2}"],
    ["VADD", "k", "VALUES", "2", "0", "1", "c"],
    ["VADD", "k", "VALUES", "2", "-1", "0", "d"]
  ]

-- | One and a half, in 32 bits each.
oneHalf :: ByteString
oneHalf = "\0\0\x80\x3f\0\0\0\x3f"

numbers :: [Double] -> Embedding
numbers = EmbeddingNumbers . primArrayFromList

doubles :: PrimArray Float -> [Double]
doubles = map realToFrac . primArrayToList

-- | As exact as eight bits for a number are.
near :: [Double] -> [Double] -> Bool
near expected found = length expected == length found && and (zipWith (\one other -> abs (one - other) < 0.01) expected found)
