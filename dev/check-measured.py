#!/usr/bin/env python3
"""Checks that the README and the guides say no measured figure without saying where it is from: a
part of a page, from one heading to the next, that has a rate, an interval or a ratio with its spread links to a
run under compare/results or to a notebook under docs/lab. Examples in blocks of code are no figures."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURED = re.compile(
    r"\d ?[kM]/s\b"  # 39.3 k/s
    r"|± ?\d"  # 1.16 ± 0.05
    r"|\d\.\d\d \(\d\.\d\d ?(?:–|-|to) ?\d\.\d\d\)"  # 0.98 (0.84–1.11)
    r"|\b\d{1,3}(?: \d{3})+ (?:a second|per second)"  # 120 742 a second
    r"|\| \d{1,3}(?: \d{3})+ \| \d{1,3}(?: \d{3})+ \|"  # | 790 657 | 835 223 |
    r"|\| \d[\d.]* (?:µs|ns)\b"  # | 0.95 µs
)
SOURCE = re.compile(r"\]\([^)\s]*(?:compare/results|/lab|docs/lab)/[^)\s]+\)")


def wrong(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    problems = []
    for part in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        found = MEASURED.search(part)
        if found and not SOURCE.search(part):
            heading = part.splitlines()[0].lstrip("# ")
            problems.append(f"{page.relative_to(ROOT)}: {heading}: no run is named for {found[0]!r}")
    return problems


def main() -> int:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
    problems = [problem for page in pages for problem in wrong(page)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
