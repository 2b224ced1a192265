"""The comparison of the libraries: what its runs say, as tables and as a picture.

Nothing here can flatter. A turn's ratio is to the client of a kind that was fastest in that turn, and its two rates are
of the same iteration. A run's ratio is the median of its turns. What is said of several runs is the median of theirs,
with the lowest and the highest, and in how many turns ours was ahead. Only runs beside the same clients in the same
versions, within the same programs, are taken together: a client that was replaced says nothing of the one that is used today.
"""
import math
import statistics
from dataclasses import dataclass
from typing import NamedTuple

from runs import Run

OURS = "redis-client"
CALLERS = [1, 16, 64, 256]
# A row that used more of its core than this shows itself, not the server.
FULL = 0.8
# Since then the programs around all clients read the clock once for each command; before, some read it twice.
PROGRAMS_SINCE = "2026-11-29 13:40"


def is_ours(row: dict) -> bool:
    return row["row"] == OURS


def is_native(row: dict) -> bool:
    return row["language"] == "C"


def is_other(row: dict) -> bool:
    return not is_ours(row) and not is_native(row)


def is_stackexchange(row: dict) -> bool:
    return row["language"] == "C#"


def is_hedis(row: dict) -> bool:
    return row["row"] == "hedis"


# Whom ours is set beside.
KINDS = [is_other, is_native, is_hedis]

# Groups of the picture: what is shown, and whose rows it is the best of.
GROUPS = [
    (OURS, is_ours),
    ("C: the better hiredis", is_native),
    (".NET: StackExchange.Redis", is_stackexchange),
    ("Go", lambda row: row["language"] == "Go"),
    ("Node", lambda row: row["language"] == "JavaScript"),
    ("Python", lambda row: row["language"] == "Python"),
    ("Haskell: hedis", is_hedis),
    ("Rust", lambda row: row["language"] == "Rust"),
]

LIGHT = {"ground": "#ffffff", "ink": "#1f2328", "faint": "#d0d7de", "soft": "#59636e",
         "lines": ["#8250df", "#1f2328", "#0969da", "#1a7f37", "#bc4c00", "#9a6700", "#cf222e", "#0d7887"]}
DARK = {"ground": "#0d1117", "ink": "#f0f6fc", "faint": "#30363d", "soft": "#9198a1",
        "lines": ["#d2a8ff", "#f0f6fc", "#79c0ff", "#7ee787", "#ffa657", "#e3b341", "#ff7b72", "#39c5cf"]}


@dataclass
class Sample:
    """One row in one turn."""

    rate: float
    # Nanoseconds of its processor time for a command.
    cost: float

    @property
    def share(self) -> float:
        """The part of a core that it used."""
        return self.rate * self.cost / 1e9


Turns = dict[int, Sample]


class Key(NamedTuple):
    """A cell, by the names that the raw data have. What most cells have in common is left out where it is usual."""

    place: str
    operation: str
    value_size: int
    style: str
    in_flight: int
    keys: int = 100_000
    key_size: int = 16
    seed: int = 1
    connections: int = 1


class Report:
    """One run of the comparison of the libraries."""

    def __init__(self, run: Run):
        self.run = run
        self.folder = run.raw.parent
        self.raw = run.document
        self.rows = {row["row"]: row for row in self.raw["rows"]}
        self.cells: dict[Key, dict[str, Turns]] = {}
        wrong = set()
        for sample in self.raw["samples"]:
            key = Key(**sample["cell"])
            turns = self.cells.setdefault(key, {}).setdefault(sample["row"], {})
            turns[sample["iteration"]] = Sample(sample["ops_per_sec"], sample["cpu_ns_per_op"])
            if sample["problems"]:
                wrong.add((key, sample["row"]))
        # A row that was wrong once has no number.
        for key, row in wrong:
            del self.cells[key][row]

    @property
    def turns(self) -> str:
        """How many turns a figure is the median of."""
        count = max(len(turns) for rows in self.cells.values() for turns in rows.values())
        return spelled(count)

    @property
    def peers(self) -> tuple[frozenset[tuple[str, str]], bool]:
        """Who was measured beside ours, in which version, and whether within today's programs."""
        return frozenset((name, row["version"]) for name, row in self.rows.items() if name != OURS), self.run.order[0] >= PROGRAMS_SINCE

    @property
    def load(self) -> str:
        """The load average of the last minute before it."""
        return self.raw["manifest"].get("load_average_at_start", "").partition(" ")[0]

    def of_kind(self, key: Key, wanted) -> dict[str, Turns]:
        """The rows of a kind. redis-benchmark is measured beside the clients, and is none."""
        return {name: turns for name, turns in self.cells.get(key, {}).items() if name in self.rows and wanted(self.rows[name])}

    def best(self, key: Key, wanted) -> tuple[str, Turns] | None:
        """The row of a kind that is fastest in a cell, by its median."""
        return max(self.of_kind(key, wanted).items(), key=lambda one: rate_of(one[1]), default=None)

    def ours(self, key: Key) -> Turns:
        return self.cells.get(key, {}).get(OURS, {})

    def fastest(self, key: Key, wanted) -> dict[int, float]:
        """In each turn the rate of the one of a kind that was fastest in it."""
        found: dict[int, float] = {}
        for turns in self.of_kind(key, wanted).values():
            for turn, sample in turns.items():
                found[turn] = max(sample.rate, found.get(turn, 0))
        return found

    def ratios(self, key: Key, wanted) -> list[float]:
        """Ours in each turn, divided by the one of a kind that was fastest in that turn."""
        return quotients(self.fastest(key, is_ours), self.fastest(key, wanted))


def quotients(rates: dict[int, float], others: dict[int, float]) -> list[float]:
    return [rates[turn] / others[turn] for turn in sorted(rates) if turn in others]


def spelled(count: int) -> str:
    return dict(enumerate("none one two three four five six seven eight nine ten".split())).get(count, str(count))


def several(count: int) -> str:
    return f"{spelled(count)} run{'s' if count > 1 else ''}"


def rate_of(turns: Turns) -> float:
    return statistics.median(sample.rate for sample in turns.values())


def cost_of(turns: Turns) -> float:
    return statistics.median(sample.cost for sample in turns.values())


def share_of(turns: Turns) -> float:
    return statistics.median(sample.share for sample in turns.values())


def rate(value: float) -> str:
    return f"{value / 1000:.0f} k/s" if value >= 100_000 else f"{value / 1000:.1f} k/s"


def micros(cost: float) -> str:
    return f"{cost / 1000:.0f} µs" if cost >= 10_000 else f"{cost / 1000:.1f} µs" if cost >= 1_950 else f"{cost / 1000:.2f} µs"


def waiting(callers: int, place: str = "standalone", **unusual: int) -> Key:
    return Key(place, "GET hit", 512, "wait", callers, **unusual)


def batches(**unusual: int) -> Key:
    return Key("standalone", "GET hit", 512, "batch", 1024, **unusual)


# The rows of the README.
LINES = [
    ("1 caller", waiting(1)),
    ("16 callers", waiting(16)),
    ("256 callers", waiting(256)),
    ("16 callers, 64 at once each", batches()),
    ("five primaries, 256 callers", waiting(256, "cluster")),
]


def title_of(key: Key) -> str:
    usual = waiting(1)
    callers, how = (key.in_flight, "") if key.style == "wait" else (key.in_flight // 64, " × 64 at once")
    who = how or (" caller" if callers == 1 else " callers")
    unusual = [
        (key.keys != usual.keys, f"{key.keys} keys"),
        (key.key_size != usual.key_size, f"keys of {key.key_size} B"),
        (key.seed != usual.seed, f"seed {key.seed}"),
        (key.connections != usual.connections, f"{key.connections} connections"),
    ]
    return ", ".join([f"{key.place}: {key.operation}, {key.value_size} B", f"{callers}{who}", *(said for is_so, said in unusual if is_so)])


# What several runs say of one cell.


@dataclass
class Standing:
    """Ours beside others in several runs: the ratio of each, and how many of their turns or rounds were won."""

    ratios: list[float]
    won: int
    count: int
    what: str = "turns"

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def __str__(self) -> str:
        """Marked where ours did not win more than half."""
        mark = "▼ " if 2 * self.won <= self.count else ""
        return f"{mark}**{self.ratio:.2f}** ({min(self.ratios):.2f}–{max(self.ratios):.2f}), {self.won} of {self.count} {self.what}"


def standing(reports: list[Report], key: Key, wanted) -> Standing | None:
    """Ours beside a kind of client in all of these runs that have the cell."""
    return standing_of([report.ratios(key, wanted) for report in reports], lambda ratio: ratio > 1)


def standing_of(runs: list[list[float]], won, what: str = "turns") -> Standing | None:
    """The standing by the ratios of each run's turns."""
    known = [ratios for ratios in runs if ratios]
    turns = [ratio for ratios in known for ratio in ratios]
    return Standing([statistics.median(ratios) for ratios in known], sum(map(won, turns)), len(turns), what) if known else None


def beside(reports: list[Report], key: Key, wanted) -> str:
    """The standing, and whom the newest run had there: who, how fast, and at what cost."""
    found = standing(reports, key, wanted)
    best = reports[-1].best(key, wanted)
    if found is None or best is None:
        return "not measured"
    name, turns = best
    who = "" if wanted is is_hedis else f"{name}: "
    return f"{found}<br>{who}{rate(rate_of(turns))}, {micros(cost_of(turns))}"


def compared(reports: list[Report], cells: list[tuple[str, Key]], corner: str) -> list[str]:
    """The table that the README and the summary of docs/speed.md share."""
    out = [
        f"| {corner} | redis-client:<br>rate, CPU per command | ÷ the best client that is not C | ÷ the better hiredis (C) | ÷ hedis |",
        "|---|--:|---|---|---|",
    ]
    for title, key in cells:
        ours = reports[-1].ours(key)
        columns = [title, f"{rate(rate_of(ours))}<br>{micros(cost_of(ours))}", *(beside(reports, key, wanted) for wanted in KINDS)]
        out.append("| " + " | ".join(columns) + " |")
    return out


def measured(reports: list[Report]) -> list[Report]:
    """The runs that have all rows of the README beside the same clients in the same versions as the newest of them."""
    whole = [report for report in reports if all(report.ours(key) for _, key in LINES)]
    return [report for report in whole if report.peers == whole[-1].peers]


def headline(reports: list[Report]) -> str:
    """The rows of the README in two sentences: beside hedis, and beside the best that is not C and C."""
    where = ["with 1 caller", "with 16", "with 256", "in batches", "with 256 on five primaries"]
    hedis = [found.ratio for _, key in LINES if (found := standing(reports, key, is_hedis))]
    version = reports[-1].rows["hedis"]["version"]
    others, natives = ([f"{standing(reports, key, wanted).ratio:.2f}" for _, key in LINES] for wanted in (is_other, is_native))
    beside_others = ", ".join(f"{ratio} {at}" for ratio, at in zip(others, where))
    beside_natives = f"{', '.join(natives[:-1])} and {natives[-1]}"
    return f"{min(hedis):.2f} to {max(hedis):.2f} times the rate of hedis {version}. Beside the fastest client that is not in C: {beside_others}. Beside hiredis, in C: {beside_natives}"


def surroundings(report: Report) -> str:
    manifest = report.raw["manifest"]
    return f"revision {manifest['revision'][:7]}, {report.run.machine}, {manifest['compiler']}, {manifest['server']}"


def versions(report: Report) -> str:
    """Who was measured, by where it came from."""
    places: dict[str, dict[str, list[str]]] = {}
    for name, row in report.rows.items():
        if name != OURS:
            library = name.removesuffix(row["version"]).rstrip()
            places.setdefault(row["origin"], {}).setdefault(library, []).append(row["version"])
    return "; ".join(f"from {place}: " + ", ".join(f"{name} {', '.join(known)}" for name, known in libraries.items()) for place, libraries in places.items())


def not_in_clusters(report: Report) -> str:
    return ", ".join(name for name, row in report.rows.items() if not row["cluster"])


# One run by itself.


# Whom a run is set beside in its table.
COLUMNS = [("best that is not C", is_other), ("better hiredis", is_native), ("hedis", is_hedis)]


def lines(report: Report, columns=COLUMNS, keys=None) -> list[str]:
    """The cells of a run that have ours: the ratio, and that of the worst and of the best turn."""
    out = ["| | redis-client | " + " | ".join(f"{title} | ours ÷" for title, _ in columns) + " |", "|---|--:|" + "---|--:|" * len(columns)]
    for key in report.cells if keys is None else keys:
        if not report.ours(key):
            continue
        cells = [title_of(key), rate(rate_of(report.ours(key)))]
        for _, wanted in columns:
            best = report.best(key, wanted)
            if best is None:
                cells += ["none", ""]
                continue
            name = "" if wanted is is_hedis else f"{best[0]}, "
            cells += [f"{name}{rate(rate_of(best[1]))}", spread(report.ratios(key, wanted))]
        out.append("| " + " | ".join(cells) + " |")
    return out


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def by_run(reports: list[Report], pooled: list[Report]) -> list[str]:
    """The rows of the README in every run: beside the best that is not C, and beside C. Runs that are pooled are bold."""
    out = ["| run | kernel, clock | load average | " + " | ".join(title for title, _ in LINES) + " |", "|---|---|--:|" + "--:|" * len(LINES)]
    for report in reversed(reports):
        name = f"**{report.run.name}**" if report in pooled else report.run.name
        columns = [name, f"{report.run.facts['kernel']}, {report.run.facts['clock']}", report.load or "–"]
        for _, key in LINES:
            found = [report.ratios(key, wanted) for wanted in (is_other, is_native)]
            columns.append(" / ".join(f"{statistics.median(ratios):.2f}" if ratios else "–" for ratios in found))
        out.append("| " + " | ".join(columns) + " |")
    worst = [
        " / ".join(f"{min(ratio for report in reports for ratio in report.ratios(key, wanted)):.2f}" for wanted in (is_other, is_native)) for _, key in LINES
    ]
    out.append("| the worst turn of all | | | " + " | ".join(worst) + " |")
    return out


def first_cells(report: Report) -> list[str]:
    """Ours beside StackExchange.Redis and C with as many connections; and what of its rate on one server each keeps on the cluster."""
    columns = [("best StackExchange.Redis", is_stackexchange), ("better hiredis", is_native)]
    out = []
    for connections in sorted({key.connections for key in report.cells}):
        out += [*lines(report, columns, [key for key in report.cells if key.connections == connections]), ""]
    columns = [(OURS, is_ours), *columns]
    out += ["| cluster ÷ standalone | " + " | ".join(title for title, _ in columns) + " |", "|---|" + "--:|" * len(columns)]
    for key in report.cells:
        alone = key._replace(place="standalone")
        if key.place == "cluster" and alone in report.cells:
            kept = [quotients(report.fastest(key, wanted), report.fastest(alone, wanted)) for _, wanted in columns]
            out.append("| " + " | ".join([title_of(key).removeprefix("cluster: "), *(spread(ratios) if ratios else "–" for ratios in kept)]) + " |")
    return out


def by_clock(reports: list[Report]) -> str:
    """How fast one caller of the better hiredis was, by the clock of the kernel: what waking a program costs there."""
    rates: dict[str, list[float]] = {}
    for report in reports:
        if best := report.best(waiting(1), is_native):
            rates.setdefault(report.run.facts["clock"], []).append(rate_of(best[1]) / 1000)
    return "; ".join(f"{clock} {min(found):.1f} to {max(found):.1f} k/s ({spelled(len(found))} runs)" for clock, found in sorted(rates.items()))


def polling(report: Report) -> str:
    """The part of its core that each row of the table used where few callers wait."""
    parts = []
    for title, key in LINES[:2]:
        rows = [(OURS, report.ours(key)), *(best for wanted in KINDS[:2] if (best := report.best(key, wanted)))]
        parts.append(f"with {title} " + ", ".join(f"{name} {100 * share_of(turns):.0f} %" for name, turns in rows))
    return "; ".join(parts)


# The picture.


def picture(reports: list[Report], colours: dict) -> str:
    """The runs together: each point is the median of their medians."""
    width, height, left, right, top, bottom = 860, 450, 64, 230, 46, 72
    series = []
    for (title, wanted), colour in zip(GROUPS, colours["lines"]):
        found = [(callers, [rate_of(best[1]) for report in reports if (best := report.best(waiting(callers), wanted))]) for callers in CALLERS]
        series.append((title, colour, [(callers, rates) for callers, rates in found if rates]))
    series = [one for one in series if one[2]]
    highest = max(max(rates) for _, _, points in series for _, rates in points)
    scale = 200_000 * math.ceil(highest / 200_000)

    def across(callers: float) -> float:
        return left + (width - left - right) * math.log(callers) / math.log(CALLERS[-1])

    def up(value: float) -> float:
        return height - bottom - (height - top - bottom) * value / scale

    first, last = reports[0].run.date, reports[-1].run.date
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
    notes = [
        f"callers, on a logarithmic scale; medians of {several(len(reports))}, with the slowest and the fastest",
        f"{first if first == last else f'{first} to {last}'}, {reports[-1].raw['manifest']['cpu']}, a core each for server and client; of each language the fastest client",
    ]
    for line, note in enumerate(notes):
        out.append(f'<text x="{left}" y="{height - 28 + 18 * line}" fill="{colours["soft"]}">{note}</text>')
    # Names stand beside the ends of the lines, moved apart where they would touch, and none below the scale.
    ends = sorted((up(statistics.median(points[-1][1])), title, colour) for title, colour, points in series)
    room = 17
    placed: list[float] = []
    for y, _, _ in ends:
        placed.append(max(y, placed[-1] + room) if placed else y)
    for place in range(len(placed)):
        placed[-1 - place] = min(placed[-1 - place], up(0) - room * place)
    for y, (_, title, colour) in zip(placed, ends):
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
