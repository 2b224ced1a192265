#!/usr/bin/env python3
"""Draws what README, docs/speed.md and docs/campaign.md show of what was measured, from their raw data.

    dev/figures.py write     writes the pictures and what stands between the markers
    dev/figures.py check     says what would change, and fails if anything would

The newest report of the libraries under compare/results is drawn. All runs are listed.
"""
import math
import re
import statistics
import sys
from collections import Counter
from pathlib import Path

import campaign_page
from runs import FACTS, PLACES, ROOT, Run, Service, every_run, service_lines, services_of

OURS = "redis-client"
# Raw data of later days name all of FACTS.
NAMED_SINCE = "2026-11-25"

# Groups of the picture: what is shown, and whose rows it is the best of.
GROUPS = [
    (OURS, lambda row: row["row"] == OURS),
    ("C: hiredis", lambda row: row["language"] == "C"),
    (".NET: StackExchange.Redis", lambda row: row["language"] == "C#"),
    ("Go", lambda row: row["language"] == "Go"),
    ("Node", lambda row: row["language"] == "JavaScript"),
    ("Python", lambda row: row["language"] == "Python"),
    ("Haskell: hedis", lambda row: row["language"] == "Haskell" and row["row"] != OURS),
]
CALLERS = [1, 16, 64, 256]

LIGHT = {"ground": "#ffffff", "ink": "#1f2328", "faint": "#d0d7de", "soft": "#59636e",
         "lines": ["#8250df", "#1f2328", "#0969da", "#1a7f37", "#bc4c00", "#9a6700", "#cf222e"]}
DARK = {"ground": "#0d1117", "ink": "#f0f6fc", "faint": "#30363d", "soft": "#9198a1",
        "lines": ["#d2a8ff", "#f0f6fc", "#79c0ff", "#7ee787", "#ffa657", "#e3b341", "#ff7b72"]}


class Report:
    """One run of the comparison of the libraries."""

    def __init__(self, run: Run):
        self.run = run
        self.folder = run.raw.parent
        self.raw = run.document
        self.rows = {row["row"]: row for row in self.raw["rows"]}
        self.cells: dict[tuple, dict[str, list[float]]] = {}
        # The part of its core that a row used.
        self.shares: dict[tuple, dict[str, list[float]]] = {}
        # Nanoseconds of its processor time for a command.
        self.costs: dict[tuple, dict[str, list[float]]] = {}
        wrong = set()
        for sample in sorted(self.raw["samples"], key=lambda one: one["iteration"]):
            cell = sample["cell"]
            key = (cell["place"], cell["operation"], cell["value_size"], cell["style"], cell["in_flight"])
            self.cells.setdefault(key, {}).setdefault(sample["row"], []).append(sample["ops_per_sec"])
            self.costs.setdefault(key, {}).setdefault(sample["row"], []).append(sample["cpu_ns_per_op"])
            self.shares.setdefault(key, {}).setdefault(sample["row"], []).append(sample["ops_per_sec"] * sample["cpu_ns_per_op"] / 1e9)
            if sample["problems"]:
                wrong.add((key, sample["row"]))
        # A row that was wrong once has no number.
        for key, row in wrong:
            del self.cells[key][row]

    @property
    def runs(self) -> str:
        """How many runs a figure is the median of."""
        count = max(len(rates) for rows in self.cells.values() for rates in rows.values())
        return dict(enumerate("none one two three four five six seven eight nine ten".split())).get(count, str(count))

    def option(self, name: str) -> str:
        """What an option was when it ran."""
        options = self.raw["manifest"]["options"]
        return options[options.index(name) + 1]

    @property
    def date(self) -> str:
        return self.run.date

    def best(self, key: tuple, wanted) -> tuple[str, list[float]] | None:
        """The row that is fastest in this cell of those that are wanted, by its median."""
        # redis-benchmark is measured beside the clients, and is none.
        rows = [(name, rates) for name, rates in self.cells.get(key, {}).items() if name in self.rows and wanted(self.rows[name])]
        return max(rows, key=lambda one: statistics.median(one[1]), default=None)


def waiting(callers: int) -> tuple:
    return ("standalone", "GET hit", 512, "wait", callers)


# The picture.

def picture(report: Report, colours: dict) -> str:
    width, height, left, right, top, bottom = 860, 430, 64, 230, 46, 52
    series = []
    for (title, wanted), colour in zip(GROUPS, colours["lines"]):
        points = [(callers, found) for callers in CALLERS if (found := report.best(waiting(callers), wanted))]
        series.append((title, colour, [(callers, rates) for callers, (_, rates) in points]))
    highest = max(max(rates) for _, _, points in series for _, rates in points)
    scale = 200_000 * math.ceil(highest / 200_000)

    def across(callers: float) -> float:
        return left + (width - left - right) * math.log(callers) / math.log(CALLERS[-1])

    def up(rate: float) -> float:
        return height - bottom - (height - top - bottom) * rate / scale

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="13" role="img" aria-label="GETs a second by the number of callers">',
        f'<rect width="{width}" height="{height}" fill="{colours["ground"]}"/>',
        f'<text x="{left}" y="24" fill="{colours["ink"]}" font-size="15" font-weight="600">GETs a second, by callers that wait for each reply</text>',
    ]
    for step in range(0, scale + 1, 200_000):
        y = up(step)
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colours["faint"]}"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{colours["soft"]}">{step // 1000}{" k" if step else ""}</text>')
    for callers in CALLERS:
        x = across(callers)
        out.append(f'<text x="{x:.1f}" y="{height - bottom + 20}" text-anchor="middle" fill="{colours["soft"]}">{callers}</text>')
    out.append(f'<text x="{(left + width - right) / 2:.1f}" y="{height - 10}" text-anchor="middle" fill="{colours["soft"]}">callers; medians, with the slowest and the fastest of {report.runs} runs</text>')
    # Names stand beside the ends of the lines, moved apart where they would touch.
    ends = sorted((up(statistics.median(points[-1][1])), title, colour) for title, colour, points in series)
    placed: list[float] = []
    for y, title, colour in ends:
        y = max(y, placed[-1] + 17) if placed else y
        placed.append(y)
        weight = ' font-weight="700"' if title == OURS else ""
        out.append(f'<text x="{width - right + 12}" y="{y + 4:.1f}" fill="{colour}"{weight}>{title}</text>')
    for title, colour, points in reversed(series):
        thick = 3 if title == OURS else 1.6
        for callers, rates in points:
            x = across(callers)
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up(min(rates)):.1f}" y2="{up(max(rates)):.1f}" stroke="{colour}" stroke-width="{thick}" opacity="0.45"/>')
        path = " ".join(f"{across(callers):.1f},{up(statistics.median(rates)):.1f}" for callers, rates in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{thick}" stroke-linejoin="round"/>')
        out += [f'<circle cx="{across(callers):.1f}" cy="{up(statistics.median(rates)):.1f}" r="{thick + 1}" fill="{colour}"/>' for callers, rates in points]
    return "\n".join(out + ["</svg>", ""])


# The tables.

LINES = [
    ("GET, 1 caller", waiting(1)),
    ("GET, 16 callers", waiting(16)),
    ("GET, 256 callers", waiting(256)),
    ("GET, 16 × 64 at once", ("standalone", "GET hit", 512, "batch", 1024)),
    ("cluster: GET, 256 callers", ("cluster", "GET hit", 512, "wait", 256)),
]

# Of these, those in which the server is full.
FULL = [("with 256 callers", waiting(256)), ("in batches", LINES[3][1]), ("in a cluster", LINES[4][1])]


def rate(value: float) -> str:
    return f"{value / 1000:.0f} k/s" if value >= 100_000 else f"{value / 1000:.1f} k/s"


def ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(ours) / statistics.median(theirs)


def worst_turn(ours: list[float], theirs: list[float]) -> float:
    """The least ratio of two runs, one after the other."""
    return min(mine / other for mine, other in zip(ours, theirs))


def beside(ours: list[float], theirs: list[float], elsewhere: list[float]) -> str:
    """The ratio of the medians, and that of the worst turn, of this report and of others."""
    return f"{ratio(ours, theirs):.2f} (worst turn {min([worst_turn(ours, theirs), *elsewhere]):.2f})"


def rivals(report: Report, key: tuple) -> list[tuple[str, list[float]] | None]:
    """The fastest other that is not in C, and the fastest in C."""
    return [report.best(key, lambda row: row["row"] != OURS and row["language"] != "C"), report.best(key, lambda row: row["language"] == "C")]


def lines(report: Report, cells: list[tuple[str, tuple]], all_reports: tuple[Report, ...] = ()) -> list[str]:
    out = [
        "| | redis-client | fastest client not in C | ours ÷ it | better hiredis | ours ÷ it | hedis | ours ÷ it |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for title, key in cells:
        ours = report.cells[key][OURS]
        other, native = rivals(report, key)
        hedis = report.best(key, lambda row: row["row"] == "hedis")
        others, natives = ([worst_turn(each.cells[key][OURS], one[1]) for each in all_reports if OURS in each.cells.get(key, {}) and (one := rivals(each, key)[which])] for which in (0, 1))
        cols = [title, rate(statistics.median(ours))]
        cols += [f"{other[0]}, {rate(statistics.median(other[1]))}", beside(ours, other[1], others)] if other else ["none", ""]
        cols += [rate(statistics.median(native[1])), beside(ours, native[1], natives)] if native else ["none", ""]
        cols += [rate(statistics.median(hedis[1])), f"{ratio(ours, hedis[1]):.2f}"] if hedis else ["none", ""]
        out.append("| " + " | ".join(cols) + " |")
    return out


def title_of(key: tuple) -> str:
    place, operation, size, style, in_flight = key
    how = ("1 caller" if in_flight == 1 else f"{in_flight} callers") if style == "wait" else "16 × 64 at once"
    return f"{place}: {operation}, {size} B, {how}"


def surroundings(report: Report) -> str:
    manifest = report.raw["manifest"]
    return f"revision {manifest['revision'][:7]}, {manifest['cpu']}, Linux {manifest['kernel']}, {manifest['compiler']}, {manifest['server']}"


def versions(report: Report) -> str:
    """Who was measured, by where it came from."""
    places: dict[str, dict[str, list[str]]] = {}
    for name, row in report.rows.items():
        if name != OURS:
            library = name.removesuffix(row["version"]).rstrip()
            places.setdefault(row["origin"], {}).setdefault(library, []).append(row["version"])
    return "; ".join(f"from {place}: " + ", ".join(f"{name} {', '.join(known)}" for name, known in libraries.items()) for place, libraries in places.items())


def busy(report: Report) -> str:
    """What few callers cost each, for who would not see that it polls; and many, beside C."""
    return (
        f"With one caller {shares(report, waiting(1))}; with 16 callers {shares(report, waiting(16))}: "
        + "[ours polls](docs/guide/tuning.md#the-client), unless it is told not to.\n"
        + "A command costs this many times the processor time of the hiredis that needs less: "
        + ", ".join(f"{where} {beside_cheapest(report, key):.2f}" for where, key in FULL)
        + "."
    )


def shares(report: Report, key: tuple) -> str:
    """The part of its core that each used, of ours and of those beside it in the table."""
    other, native = rivals(report, key)
    share = {name: round(100 * statistics.median(report.shares[key][name])) for name in [OURS, *(one[0] for one in (other, native) if one)]}
    rest = " and ".join(f"{name} {part} %" for name, part in share.items() if name != OURS)
    return f"ours used {share[OURS]} % of its core, {rest}"


def beside_cheapest(report: Report, key: tuple) -> float:
    """The processor time of a command of ours, divided by that of the client in C that needs least."""
    natives = [statistics.median(costs) for name, costs in report.costs[key].items() if name in report.rows and report.rows[name]["language"] == "C"]
    return statistics.median(report.costs[key][OURS]) / min(natives)


def in_services(runs: list[Run]) -> str:
    """The least and the greatest ratio of the REST services of the newest run of each place, and the worst round of all runs."""
    newest: dict[str, tuple[Run, list[float]]] = {}
    worst: dict[str, float] = {}
    for run in runs:
        found = services_of(run)
        for place in {cell.place for cell in found}:
            cells = [cell for cell in found if cell.place == place]
            ratios = [cell.ratio for cell in cells if cell.ratio is not None]
            if ratios:
                newest[place] = run, ratios
            worst[place] = min([worst.get(place, math.inf), *(cell.worst for cell in cells if cell.worst is not None)])
    said = []
    for place in filter(newest.get, PLACES.values()):
        run, ratios = newest[place]
        page = run.report.relative_to(ROOT).as_posix()
        said.append(f"- {place}: {min(ratios):.2f} to {max(ratios):.2f} times ([{run.date}]({page}), which reached {run.goals} goals); the worst round of all runs {worst[place]:.2f}")
    return "\n".join([
        "We wrote one REST service over SQLite and Redis twice: with this library, and in ASP.NET Core with StackExchange.Redis.",
        "Ours answers this many times the requests of the other, from the worst scenario to the best:",
        "",
        *said,
    ])


def readme_block(report: Report, services: list[Run], all_reports: list[Report]) -> str:
    where = report.folder.relative_to(ROOT).as_posix()
    return "\n".join([
        "<picture>",
        '  <source media="(prefers-color-scheme: dark)" srcset="docs/figures/callers-dark.svg">',
        '  <img alt="GETs a second by the number of callers that wait: this library, and the best of C, .NET, Go, Node, Python and Haskell" src="docs/figures/callers-light.svg">',
        "</picture>",
        "",
        *lines(report, LINES, tuple(all_reports)),
        "",
        "GETs of 512 bytes, in thousands per second. *16 × 64* is 16 callers, each of which sends 64 commands and waits for all.",
        "The *better hiredis* is the faster of two programs: one writes and reads by itself, the other uses its asynchronous interface.",
        f"Medians of {report.runs} runs of {report.option('--duration')} s in turns on {report.date}, server on one core and client on the other, compiled with `-O2` ([beside `-O1`](docs/lab/2026-11-25-optimisation.md); {surroundings(report)}; load average at the start {report.raw['manifest']['load_average_at_start'].split()[0]}).",
        f"*Worst turn* is the lowest ratio within one turn of any of the {len(all_reports)} reports in this repository, each time to the client that was the fastest of its kind in that report. They include other revisions and busier hours.",
        "",
        busy(report),
        f"[The report]({where}/COMPARISON-client.md) has every row and says where others are faster; it reached {report.run.goals} [goals](docs/speed.md#what-is-aimed-at). [Raw data]({where}/raw.json).",
        "Those from Debian (C, Go, Python, hedis) are some years old: [the versions](docs/speed.md#the-libraries-alone).",
        "",
        in_services(services),
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
            ", Linux ".join(one for one in (facts["machine"], facts["kernel"]) if one),
            ", ".join(one for one in (facts["compiler"], facts["server"]) if one),
            run.goals,
            ", ".join(run.lacks),
        ]
        out.append("| " + " | ".join(columns) + " |")
    return "\n".join(out)


def beside_all(all_reports: list[Report]) -> list[str]:
    """The cells of the README in every run: the ratio to the fastest other, C aside, and to C."""
    out = ["| run | " + " | ".join(title for title, _ in LINES) + " |", "|---|" + "--:|" * len(LINES)]
    for report in reversed(all_reports):
        columns = []
        for _, key in LINES:
            ours = report.cells.get(key, {}).get(OURS)
            columns.append(" / ".join(f"{ratio(ours, one[1]):.2f}" if one else "–" for one in rivals(report, key)) if ours else "–")
        out.append(f"| {report.run.name} | " + " | ".join(columns) + " |")
    return out


def folded(run: Run, about: str, table: list[str]) -> list[str]:
    return [f"<details><summary>{run.name}</summary>", "", about, "", *table, "", "</details>", ""]


def libraries_block(all_reports: list[Report]) -> str:
    out = [*beside_all(all_reports), ""]
    out += [f"The newest run measured, {versions(all_reports[-1])}. Debian's versions are some years old, and neither its Go clients nor hedis are measured in a cluster.", ""]
    for report in reversed(all_reports):
        about = f"{surroundings(report)}; `{report.run.facts['commands']}`."
        out += folded(report.run, about, lines(report, [(title_of(key), key) for key in report.cells if OURS in report.cells[key]]))
    return "\n".join(out).rstrip("\n")


def services_block(runs: list[Run]) -> str:
    out = []
    for run in reversed(runs):
        table = service_lines(run)
        if table:
            out += folded(run, f"revision {run.facts['revision'][:7]}, {run.facts['machine']}, Linux {run.facts['kernel']}, {run.facts['compiler']}, {run.facts['server']}.", table)
    return "\n".join(out).rstrip("\n")


def gate_block(runs: list[Run]) -> str:
    """Every run of the gate beside the others: the ratio, its interval, and whether it misses what it must reach."""
    days = len({run.date for run in runs})
    counts = [Counter(row["verdict"].lower() for row in run.document["rows"]) for run in runs]
    out = [
        f"{len(runs)} run{'s' if len(runs) != 1 else ''} on {days} day{'s' if days != 1 else ''}: the geometric mean of the turns' ratios (its 95 % interval).",
        "",
        "Rows with a bound: " + "; ".join(f"{run.date} {run.facts['time']} reached {count['reached']}, undecided {count['undecided']}, missed {count['missed']}" for run, count in zip(runs, counts)) + ".",
        "",
        "*: this program's load used more than 80 % of its core, so that the figure is the client's own speed, not the server's.",
        "",
        "| | must | " + " | ".join(f"{run.date} {run.facts['time']}" for run in runs) + " |",
        "|---|--:|" + "--:|" * len(runs),
    ]
    tables = [{(row["what"], row["unit"]): row for row in run.document["rows"]} for run in runs]
    for key in dict.fromkeys(key for table in tables for key in table):
        what, unit = key
        found = [table.get(key) for table in tables]
        must = next(row["must"] for row in found if row)
        bound = "" if must is None else f"{'≤' if is_cost(what) else '≥'} {must:.2f}"
        out.append("| " + " | ".join([f"{what}, {unit}", bound, *map(gate_figure, found)]) + " |")
    return "\n".join(out)


def is_cost(what: str) -> bool:
    """Whether less is better."""
    return any(word in what for word in ("CPU", "memory", "late"))


def gate_figure(row: dict | None) -> str:
    """A row of one run, as the gate itself judges it."""
    if row is None:
        return "–"
    full = "\\*" if (row["client_cpu_share"] or 0) > 0.8 else ""
    spread = f" ({row['interval'][0]:.2f}–{row['interval'][1]:.2f})" if row["interval"] else ""
    verdict = {"Stated": "", "Reached": ", reached"}.get(row["verdict"], f", **{row['verdict'].lower()}**")
    return f"{row['measured']:.2f}{full}{spread}{verdict}"


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
    whole = [report for report in found if all(OURS in report.cells.get(key, {}) for _, key in LINES)]
    if not whole:
        sys.exit("compare/results has no report of the libraries")
    newest = whole[-1]
    services = [run for run in runs if run.what == "REST"]
    readme, speed = ROOT / "README.md", ROOT / "docs" / "speed.md"
    page = speed.read_text()
    for name, text in [
        ("runs", index_block(runs)),
        ("libraries", libraries_block(found)),
        ("services", services_block(services)),
        ("gate", gate_block([run for run in runs if run.what == "gate"])),
    ]:
        page = between(speed, page, name, text)
    campaign = ROOT / "docs" / "campaign.md"
    return {
        campaign: between(campaign, campaign.read_text(), "campaign", campaign_page.block()),
        ROOT / "docs/figures/callers-light.svg": picture(newest, LIGHT),
        ROOT / "docs/figures/callers-dark.svg": picture(newest, DARK),
        readme: between(readme, readme.read_text(), "figures", readme_block(newest, services, found)),
        speed: page,
    }


def main(arguments: list[str]) -> int:
    if arguments not in (["write"], ["check"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    status = 0
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
