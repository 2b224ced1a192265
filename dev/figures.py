#!/usr/bin/env python3
"""Draws what README, docs/speed.md and docs/campaign.md show of what was measured, from their raw data.

    dev/figures.py write     writes the pictures and what stands between the markers
    dev/figures.py check     says what would change, and fails if anything would, or if a page of charts is kept that nothing links to
    dev/figures.py pack      compresses raw data that are too large to be kept as they are

The runs of the libraries beside today's clients are drawn together. All runs are listed.
"""
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import campaign_page
import gate_page
from libraries import DARK, LIGHT, Key, Report, LINES, by_clock, by_run, compared, first_cells, headline, is_other, lines, measured, not_in_clusters, picture, polling, several, surroundings, title_of, versions
from runs import FACTS, ROOT, Run, charts, every_run, pack, unpacked
from services import autocannon_lines, in_one_sentence, in_services, service_lines

# Raw data of later days name all of FACTS.
NAMED_SINCE = "2026-11-25"


def readme_block(reports: list[Report], services: list[Run]) -> str:
    newest = reports[-1]
    where = newest.folder.relative_to(ROOT).as_posix()
    return "\n".join([
        "<picture>",
        '  <source media="(prefers-color-scheme: dark)" srcset="docs/figures/callers-dark.svg">',
        '  <img alt="GETs a second by the number of callers that wait: this library, and the best of C, Rust, .NET, Go, Node, Python and Haskell" src="docs/figures/callers-light.svg">',
        "</picture>",
        "",
        *compared(reports, LINES, "GETs of 512 bytes"),
        "",
        f"**Bold** is our rate ÷ that of the fastest such client in the same turn: the median of the {several(len(reports))} with today's versions of all clients. Then come the lowest and the highest",
        f"run, and the turns that ours won (▼: half or fewer). Rates and processor time are of the newest run ([raw data]({where}/raw.json), {newest.run.date}). Server and client have one core",
        "each. With few callers redis-client polls, and uses its whole core; hiredis sleeps ([how to read it](docs/speed.md#how-to-read-it)).",
        in_one_sentence(services),
    ])


def fast_line(page: str, reports: list[Report]) -> str:
    """The README with its line on speed."""
    line = f"- **[Fast](#speed)**: {headline(reports)} (medians of {several(len(reports))})."
    text, count = re.subn(r"^- \*\*\[Fast\]\(#speed\)\*\*: .*$", line, page, flags=re.MULTILINE)
    if count != 1:
        sys.exit("README.md has no one line on speed")
    return text


def names(report: Report, rows: Iterable[str] | None = None) -> list[str]:
    """The libraries of all rows or of these, each once, without ours and without C."""
    of = [name for name in (report.rows if rows is None else rows) if is_other(report.rows[name])]
    return list(dict.fromkeys(name.removesuffix(report.rows[name]["version"]).rstrip() for name in of))


def fewer(report: Report, cells: list[tuple[str, Key]]) -> str:
    """The rows of the table in which not all libraries were measured, and which were. Neighbours have the same."""
    found: dict[str, list[str]] = {}
    for title, key in cells:
        here = names(report, report.of_kind(key, is_other))
        if len(here) < len(names(report)):
            found.setdefault(", ".join(here), []).append(title)
    return " ".join(f"In *{titles[0]}*{f' to *{titles[-1]}*' if titles[1:] else ''} only of {here}." for here, titles in found.items())


def summary_block(reports: list[Report], services: list[Run], gates: list[Run]) -> str:
    newest = reports[-1]
    cells = [(title_of(key), key) for key in newest.cells if newest.ours(key)]
    return "\n".join([
        "### Beside other clients",
        "",
        *compared(reports, cells, "the client's rate"),
        "",
        f"**Bold** is of the {several(len(reports))} beside the same clients in today's versions: {', '.join(report.run.name for report in reports)}. ▼: ours was ahead in half of the turns or fewer.",
        f"*The best client that is not C* is of {', '.join(names(newest))} ([versions](#the-libraries-alone)). {fewer(newest, cells)}".rstrip(),
        "",
        "### In a REST service",
        "",
        *in_services(services),
        "",
        "### Beside `redis-benchmark` and hiredis, by the gate",
        "",
        *gate_page.pooled_lines(gates),
    ])


def link(path: Path) -> str:
    """A path as docs/speed.md links it."""
    return "../" + path.relative_to(ROOT).as_posix() if not path.is_relative_to(ROOT / "docs") else path.relative_to(ROOT / "docs").as_posix()


def index_block(runs: list[Run]) -> str:
    out = ["| run | what | when (UTC) | revision | machine | compiler, server | goals of its day | raw data do not name |", "|---|---|---|---|---|---|---|---|"]
    for run in reversed(runs):
        facts = {name: run.facts.get(name) or "" for name in FACTS}
        revision = ", ".join(one[:7] + ("-dirty" if one.endswith("-dirty") else "") for one in facts["revision"].split(", ") if one)
        columns = [
            f"[{run.name}]({link(run.report)}), [raw]({link(run.raw)})",
            run.what,
            f"{run.date} {facts['time']}".strip(),
            revision,
            run.machine,
            ", ".join(one for one in (facts["compiler"], facts["server"]) if one),
            run.goals,
            ", ".join(run.lacks),
        ]
        out.append("| " + " | ".join(columns) + " |")
    return "\n".join(out)


def folded(run: Run, about: str, table: list[str]) -> list[str]:
    return [f"<details><summary>{run.name}</summary>", "", about, "", *table, "", "</details>", ""]


def libraries_block(all_reports: list[Report], pooled: list[Report]) -> str:
    newest = pooled[-1]
    out = [*by_run(all_reports, pooled), ""]
    out += [f"One caller of the better hiredis, by the clock of the kernel: {by_clock(all_reports)}.", ""]
    out += [f"The newest run measured, {versions(newest)}. Not measured in a cluster: {not_in_clusters(newest)}.", ""]
    out += [f"Used of its core in the newest run: {polling(newest)}.", ""]
    for report in reversed(all_reports):
        about = f"{surroundings(report)}; `{report.run.facts['commands']}`; load average at the start {report.load or 'not kept'}."
        out += folded(report.run, about, lines(report))
    return "\n".join(out).rstrip("\n")


def first_block(reports: list[Report]) -> str:
    """The newest run of these cells, with its heading: no section without a run."""
    if not reports:
        return ""
    newest = reports[-1]
    return "\n".join([
        "## The cells of the first benchmarks",
        "",
        "The first benchmarks of this library had keys of 512 bytes, and one or four connections. Here all clients have as many: ours, the StackExchange.Redis that",
        "was fastest in the turn, and the hiredis that was (in batches on one server, hiredis has a connection for each batch). Medians of the turns, with",
        f"the lowest and the highest, of [{newest.run.name}]({link(newest.run.report)}) ([raw data]({link(newest.run.raw)})): {surroundings(newest)}; {newest.turns} turns.",
        "The last table has what each keeps of its own rate where five primaries share the core of the one server.",
        "",
        *first_cells(newest),
    ])


def services_block(runs: list[Run]) -> str:
    out = []
    for run in reversed(runs):
        table = service_lines(run)
        if table:
            out += folded(run, f"revision {run.facts['revision'][:7]}, {run.machine}, {run.facts['compiler']}, {run.facts['server']}.", table)
    return "\n".join(out).rstrip("\n")


def autocannon_block(runs: list[Run]) -> str:
    return "\n".join(line for run in reversed(runs) for line in folded(run, f"revision {run.facts['revision'][:7]}, {run.facts['machine']}.", autocannon_lines(run))).rstrip("\n")


def between(page: Path, whole: str, name: str, text: str) -> str:
    """The page's text with this between its markers."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, marker, rest = whole.partition(begin)
    _, closing, after = rest.partition(end)
    if not marker or not closing:
        sys.exit(f"{page.relative_to(ROOT)} has no {begin} … {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def wanted() -> dict[Path, str]:
    runs = every_run()
    found = [Report(run) for run in runs if run.what == "libraries"]
    whole = measured(found)
    if not whole:
        sys.exit("compare/results has no report of the libraries")
    gates = [run for run in runs if run.what == "gate"]
    services = [run for run in runs if run.what == "REST"]
    readme, speed = ROOT / "README.md", ROOT / "docs" / "speed.md"
    page = speed.read_text()
    for name, text in [
        ("summary", summary_block(whole, services, gates)),
        ("runs", index_block(runs)),
        ("libraries", libraries_block(found, whole)),
        ("first cells", first_block([Report(run) for run in runs if run.what == "libraries, first cells"])),
        ("services", services_block(services)),
        ("autocannon", autocannon_block([run for run in runs if run.what == "rest-autocannon"])),
        ("gate", gate_page.block(gates)),
    ]:
        page = between(speed, page, name, text)
    campaign = ROOT / "docs" / "campaign.md"
    return {
        campaign: between(campaign, campaign.read_text(), "campaign", campaign_page.block()),
        ROOT / "docs/figures/soak-light.svg": campaign_page.curves(LIGHT),
        ROOT / "docs/figures/soak-dark.svg": campaign_page.curves(DARK),
        ROOT / "docs/figures/callers-light.svg": picture(whole, LIGHT),
        ROOT / "docs/figures/callers-dark.svg": picture(whole, DARK),
        readme: fast_line(between(readme, readme.read_text(), "figures", readme_block(whole, services)), whole),
        speed: page,
    }


def main(arguments: list[str]) -> int:
    if arguments not in (["write"], ["check"], ["pack"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if arguments == ["pack"]:
        for path in unpacked():
            pack(path)
        return 0
    status = 0
    for path in unpacked():
        print(f"{path.relative_to(ROOT)} is large: dev/figures.py pack")
        status = 1
    for page in charts():
        print(f"{page.relative_to(ROOT)}: pages of charts are not kept, but for those that the README of their folder links")
        status = 1
    for run in every_run():
        if run.date > NAMED_SINCE and run.lacks:
            print(f"{run.raw.relative_to(ROOT)} does not name: {', '.join(run.lacks)}")
            status = 1
    for path, text in wanted().items():
        if path.exists() and path.read_text() == text:
            continue
        if arguments == ["write"]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        else:
            print(f"{path.relative_to(ROOT)} is not what the raw data say: make figures")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
