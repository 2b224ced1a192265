#!/usr/bin/env python3
"""Compares lists in guides with the code that they are about: the rights of docs/guide/acl.md with those that
the test of them gives its users, and the errors of docs/guide/troubleshooting.md with the constructors of
Redis.Error. Says what is on one side only; fails if there is something, or if a list is empty. Also compares
the number of commands, wherever a page states it, with docs/commands.md."""
import re
import sys

from pages import ROOT

COUNTED = ["README.md", "client/README.md", "client/redis-client.cabal", "docs/features.md"]
ERRORS = ["Error", "ConnectionCause", "RoutingCause", "Refusal", "Delivery"]


def rights() -> list[str]:
    page, test = ROOT / "docs/guide/acl.md", ROOT / "client/test/cluster/RightsSpec.hs"
    shown = {
        (right.replace("\\|", "|"), need)
        for right, need in re.findall(r"^\| `\+([^`]+)`.*\| (needed|optional)\b[^|]*\|$", page.read_text(), flags=re.MULTILINE)
    }
    given = {(right, need.lower()) for right, need in re.findall(r'\("([a-z_|-]+)", (Needed|Optional)\)', test.read_text())}
    if not shown or not given:
        return [f"{page.name} or {test.name} has no rights"]
    return [f"{page.name} lacks +{right}, {need}" for right, need in sorted(given - shown)] + [
        f"{page.name} has +{right}, {need}, which {test.name} does not show" for right, need in sorted(shown - given)
    ]


def constructors(source: str, name: str) -> set[str]:
    """The constructors of a type; its comments may have anything in them."""
    body = re.search(rf"^data {name}\n(.*?)^  deriving", source, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^  (?:=|\|) (?:-- [^\n]*\n(?:    -- [^\n]*\n)*    )?([A-Z]\w*)", body[1], flags=re.MULTILINE)) if body else set()


def errors() -> list[str]:
    page = ROOT / "docs/guide/troubleshooting.md"
    source, text = (ROOT / "client/src/Redis/Error.hs").read_text(), page.read_text()
    problems, everything = [], set()
    for name in ERRORS:
        known = constructors(source, name)
        if not known:
            problems.append(f"Redis.Error has no constructors of {name}")
        everything |= known
        problems += [f"{page.name} lacks {one}, of {name}" for one in sorted(known) if f"`{one}" not in text]
    listed = set(re.findall(r"^\| `([A-Z][a-z]\w+)` \|", text, flags=re.MULTILINE))
    return problems + [f"{page.name} has {one}, which Redis.Error has not" for one in sorted(listed - everything)]


def commands() -> list[str]:
    """The pages that state another number of commands than docs/commands.md lists, and those that state none."""
    _, *sections = (ROOT / "docs/commands.md").read_text().split("\n## ")
    rows = re.findall(r"^\| (?!Command \|)[A-Z].*$", "\n".join(sections), flags=re.MULTILINE)
    counted = (str(sum("| *refused.*" not in row for row in rows)), str(len(rows)))
    stated = {name: re.findall(r"\b(\d+) of (?:the )?(\d+)\b(?! turns| \[scenarios)", (ROOT / name).read_text()) for name in COUNTED}
    return [f"{name} states no number of commands" for name, found in stated.items() if not found] + [
        f"{name} states {' of '.join(one)} commands; docs/commands.md lists {' of '.join(counted)}"
        for name, found in stated.items()
        for one in sorted(set(found) - {counted})
    ]


def main() -> int:
    problems = rights() + errors() + commands()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
