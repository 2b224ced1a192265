#!/usr/bin/env python3
"""Checks the links between the project's own pages: each file must be there, and each
heading that a link names. Links to other places are not followed."""
import re
import sys
from pathlib import Path
from urllib.parse import unquote

from pages import ROOT, pages

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    found: set[str] = set()
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for heading in re.findall(r"^#+ +(.*)$", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        base = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        name, number = base, 0
        while name in found:
            number += 1
            name = f"{base}-{number}"
        found.add(name)
    found.update(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    return found


def wrong(page: Path) -> list[str]:
    """What is wrong with the links of a page."""
    problems = []
    # What stands between backticks is no link, but a link's text may have some.
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in LINK.findall(text):
        if re.match(r"[a-z+]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        other = (page.parent / path).resolve() if path else page
        if not other.exists():
            problems.append(f"{page.relative_to(ROOT)}: no {target}")
        elif anchor and other.suffix == ".md" and anchor not in anchors(other):
            problems.append(f"{page.relative_to(ROOT)}: no heading {target}")
    return problems


def main() -> int:
    problems = [problem for page in pages() for problem in wrong(page)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
