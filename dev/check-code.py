#!/usr/bin/env python3
"""Checks that GHC compiles the Haskell in the project's pages. Each block is of one of two kinds.

A block behind a tag, such as <!-- revive -->, is part of a program in examples/, which the tests run: it is
what stands there between the lines "-- REVIVE begins" and "-- REVIVE ends".

Every other block is a module of its own, of which GHC checks the types. A program has only its own imports.
Other blocks also have those that the page has shown before, common names of GHC's libraries, "client", and what
a comment before the block declares, which readers do not see:
<!-- with import Redis.Patterns.Lock; compute :: IO [Row]; data Row -->. The page has to name such a module, if it is
of this project. Statements are joined, and … stands for anything."""
import re
import subprocess
import sys
from difflib import unified_diff
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pages import ROOT, listed, pages

BLOCK = re.compile(r"(?:^<!-- ((?:(?!-->).)*) -->\n)?^```haskell\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^[ >]*(?:```+|~~~+) *(?:haskell|hs)\b", flags=re.IGNORECASE | re.MULTILINE)
EXAMPLE = re.compile(r"^-- ([A-Z]+) begins\n(.*?)^-- \1 ends$", flags=re.DOTALL | re.MULTILINE)
DECLARATION = re.compile(r"(data|newtype|type|class|instance) |[a-z][\w']* ::|(?!let )[a-z][\w']*( [\w']+)*\s+[=|]\s")
BINDING = re.compile(r"let |[\w', ()]+ <- ")
COMPILE = """\
. scripts/cabal-env.sh
cabal build -v0 --only-dependencies redis-client-examples:test:examples &&
  cabal exec -v0 -- ghc -v0 -fno-code -fkeep-going -Werror -XImportQualifiedPost -XLambdaCase -XOverloadedStrings "$@"
"""
COMMON = """\
import Control.Concurrent.STM
import Control.Exception (displayException, throwIO)
import Control.Monad (forever, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import System.IO (hPutStrLn, stderr)
"""


class Block(NamedTuple):
    page: Path
    line: int
    mark: str
    code: str


def blocks(page: Path, text: str) -> list[Block]:
    return [Block(page, text.count("\n", 0, found.start(2)) + 1, found[1] or "", found[2]) for found in BLOCK.finditer(text)]


def examples() -> dict[str, str]:
    """What the programs have between markers, by its tag."""
    return {tag.lower(): code for file in listed("examples/*.hs") for tag, code in EXAMPLE.findall(file.read_text())}


def pieces(block: Block) -> list[list[str]]:
    """Each line at the margin with those that belong to it, behind a pragma that names its place on the page."""
    found = []
    for number, line in enumerate(block.code.splitlines(keepends=True), block.line):
        if re.match(r"(?!--)\S", line):
            found.append([f'{{-# LINE {number} "{block.page.relative_to(ROOT)}" #-}}\n', line])
        elif found:
            found[-1][1] += line
    return found


def module(name: str, block: Block, shown: list[str]) -> str:
    """The module of a block; adds what the block imports to what the page has shown."""
    parts = pieces(block)
    if re.search(r"^main ::", block.code, flags=re.MULTILINE):
        return f"module {name} where\n" + "".join(where + part for where, part in parts)
    shown += [where + part for where, part in parts if part.startswith("import ")]
    given = [part.strip() for part in block.mark.removeprefix("with ").split(";")] if block.mark else []
    if not re.search(r"\bclient ::", block.mark + block.code):
        given.append("client :: Client")
    imported = [part for part in given if part.startswith("import ")]
    declared = [re.sub(r"^([a-z][\w']*) ::.*", r"\g<0>\n\1 = undefined", part, flags=re.DOTALL) for part in given if part not in imported]
    text = f"module {name} where\n{COMMON}" + "".join(shown) + "\n".join([*imported, *declared]) + "\n"
    rest = [(where, part.replace("…", "undefined")) for where, part in parts if not part.startswith("import ")]
    for number, (declares, group) in enumerate(groupby(rest, key=lambda both: bool(DECLARATION.match(both[1])))):
        group = list(group)
        if declares:
            text += "".join(where + part for where, part in group)
        else:
            text += f"fragment{number} = do\n" + "".join(where + re.sub(r"^(?=.)", "  ", part, flags=re.MULTILINE) for where, part in group)
            text += "  pure ()\n" if BINDING.match(group[-1][1]) else ""
    return text


def compiled(modules: list[str]) -> bool:
    """Whether GHC finds nothing wrong; it says what it finds."""
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"Block{number}.hs" for number in range(len(modules))]
        for file, text in zip(files, modules):
            file.write_text(text)
        return subprocess.run(["bash", "-c", COMPILE, "ghc", *files], cwd=ROOT).returncode == 0


def main() -> int:
    problems, modules, known = [], [], examples()
    unshown = set(known)
    for page in pages():
        text = page.read_text()
        found = blocks(page, text)
        visible = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
        shown = [f"{line}\n" for line in re.findall(r"`(import [^`\n]+)`", visible)]
        name = page.relative_to(ROOT)
        if len(found) != len(FENCE.findall(text)) or sum(block.mark.startswith("with ") for block in found) != text.count("<!-- with "):
            problems.append(f"{name}: a block of Haskell, or a comment that belongs to one, is not written as this check reads it")
        for block in found:
            for other in re.findall(r"\bimport (Redis[\w.]*)", block.mark):
                if not re.search(rf"\b{other}(?!\.?\w)", visible):
                    problems.append(f"{name}:{block.line}: the code needs {other}, which the page does not name")
            if not block.mark or block.mark.startswith("with "):
                modules.append(module(f"Block{len(modules)}", block, shown))
            elif block.mark not in known:
                problems.append(f"{name}:{block.line}: no example has the code '{block.mark}'")
            else:
                unshown.discard(block.mark)
                both = (block.code.strip().splitlines(), known[block.mark].strip().splitlines())
                problems += unified_diff(*both, f"{name}:{block.line}", f"examples: {block.mark}", lineterm="")
    problems += [f"no page shows the code '{tag}' of the examples" for tag in sorted(unshown)]
    for problem in problems:
        print(problem)
    return 0 if compiled(modules) and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
