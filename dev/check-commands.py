#!/usr/bin/env python3
"""Checks that what the project's pages say to run can be run: each `make TARGET` is in the Makefile, and
cabal finds each target, and only one. Where a package and a program share a name, cabal means the package."""
import re
import sys

from pages import ROOT, listed, pages

CABAL = re.compile(r"\bcabal (run|build|test|bench|list-bin)((?: +-[-\w=/]+)*) +([\w.:-]+)")
MAKE = re.compile(r"^(?:[A-Z_]+=\S+ )*make ([a-z-]+)", flags=re.MULTILINE)
STANZA = re.compile(r"^(library|executable|test-suite|benchmark)(?: +(\S+))? *$", flags=re.MULTILINE)
KINDS = {"library": "lib", "executable": "exe", "test-suite": "test", "benchmark": "bench"}


def components() -> dict[str, set[tuple[str, str]]]:
    """What each package has: kinds and names."""
    found = {}
    for file in listed("*.cabal"):
        package = file.stem
        found[package] = {(KINDS[kind], name or package) for kind, name in STANZA.findall(file.read_text())}
    return found


def problem(verb: str, target: str, packages: dict[str, set[tuple[str, str]]]) -> str | None:
    """Why cabal would not do this."""
    parts = target.split(":")
    everything = set().union(*packages.values())
    if len(parts) == 3:
        package, kind, name = parts
        return None if (kind, name) in packages.get(package, set()) else "there is no such component"
    if len(parts) == 2:
        return None if tuple(parts) in everything else "there is no such component"
    if target == "all":
        return None
    if target in packages:
        if verb not in ("run", "list-bin") or len({one for one in packages[target] if one[0] != "lib"}) == 1:
            return None
        return "this is a package, and it has several programs"
    named = {one for one in everything if one[1] == target}
    return None if len(named) == 1 else "there is no such component" if not named else "there are several"


def main() -> int:
    packages = components()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    wrong, seen = [], 0
    for page in pages():
        # A report says what was run in its day, a record what was done.
        if page.is_relative_to(ROOT / "compare" / "results") or page.is_relative_to(ROOT / "docs" / "lab"):
            continue
        text = page.read_text()
        for verb, _, target in CABAL.findall(text):
            seen += 1
            said = problem(verb, target, packages)
            if said:
                wrong.append(f"{page.relative_to(ROOT)}: cabal {verb} {target}: {said}")
        # In a block of code a command begins a line, elsewhere it stands between backticks.
        shown = re.findall(r"```(.*?)```", text, flags=re.DOTALL) + re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
        for target in (found for part in shown for found in MAKE.findall(part)):
            seen += 1
            if target not in targets:
                wrong.append(f"{page.relative_to(ROOT)}: make {target}: the Makefile has no such target")
    for line in wrong:
        print(line)
    if not seen:
        print("no commands were found")
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
