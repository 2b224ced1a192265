#!/usr/bin/env python3
"""Finds functions of the library and of the tool with more than five parameters.

A parameter is what stands before an arrow at the top of a type signature. Local
functions that have one count as well. Says every one; fails
if there is one. The loops of the decoder are left out: what they hand on stays in
registers, and a record of it would be a box for each reply.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 5
PLACES = ["client/src", "tool/src"]
LEFT_OUT = {
    "client/src/Redis/Internal/Protocol/Decode.hs": {"decodeWhile", "close"},
    # The programs of lab/bench end with it as well.
    "tool/src/Tool/Bench.hs": {"conclude"},
}
SIGNATURE = re.compile(r"^(\s*)([a-z_][\w', ]*) ::(?: |$)")


def signatures(lines):
    """Each name, its line, and its type in one line."""
    for number, line in enumerate(lines):
        found = SIGNATURE.match(line)
        if not found:
            continue
        indent, text = len(found[1]), line[found.end():]
        for following in lines[number + 1:]:
            if not following.strip() or len(following) - len(following.lstrip()) <= indent:
                break
            text += " " + following.strip()
        yield found[2], number + 1, text


def parameters(text):
    """How many arrows stand outside of all brackets, after the constraints."""
    depth, arrows = 0, 0
    text = re.sub(r"--.*", "", text)
    for index, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith("->", index):
            arrows += 1
    return arrows


def main():
    status = 0
    for path in sorted(path for place in PLACES for path in (ROOT / place).rglob("*.hs")):
        for name, number, text in signatures(path.read_text().splitlines()):
            count = parameters(text)
            where = str(path.relative_to(ROOT))
            if count > MOST and name not in LEFT_OUT.get(where, ()):
                print(f"{where}:{number}: {name} has {count} parameters; a record names them")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
