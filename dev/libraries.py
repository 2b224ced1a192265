"""The comparison of the libraries: what its runs say, as tables and as a picture.

Nothing here can flatter. A turn's ratio is to the client of a kind that was fastest in that turn, and its two rates are
of the same iteration. A run's ratio is the median of its turns. What is said of all runs is the median of theirs, with
the lowest and the highest, and in how many turns ours was ahead.
"""
import math
import statistics
from dataclasses import dataclass

from runs import Run

OURS = "redis-client"
CALLERS = [1, 16, 64, 256]
# A row that used more of its core than this shows itself, not the server.
FULL = 0.8


def is_native(row: dict) -> bool:
    return row["language"] == "C"


def is_other(row: dict) -> bool:
    return row["row"] != OURS and not is_native(row)


def is_hedis(row: dict) -> bool:
    return row["row"] == "hedis"


# Whom ours is set beside.
KINDS = [is_other, is_native, is_hedis]

# Groups of the picture: what is shown, and whose rows it is the best of.
GROUPS = [
    (OURS, lambda row: row["row"] == OURS),
    ("C: the better hiredis", is_native),
    (".NET: StackExchange.Redis", lambda row: row["language"] == "C#"),
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
Key = tuple


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
            cell = sample["cell"]
            key = (cell["place"], cell["operation"], cell["value_size"], cell["style"], cell["in_flight"])
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

    def ratios(self, key: Key, wanted) -> list[float]:
        """Ours in each turn, divided by the one of a kind that was fastest in that turn."""
        rows = self.of_kind(key, wanted).values()
        found = []
        for turn, sample in sorted(self.ours(key).items()):
            beside = [turns[turn].rate for turns in rows if turn in turns]
            if beside:
                found.append(sample.rate / max(beside))
        return found


def spelled(count: int) -> str:
    return dict(enumerate("none one two three four five six seven eight nine ten".split())).get(count, str(count))


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


def waiting(callers: int, place: str = "standalone") -> Key:
    return (place, "GET hit", 512, "wait", callers)


def batches() -> Key:
    return ("standalone", "GET hit", 512, "batch", 1024)


# The rows of the README.
LINES = [
    ("1 caller", waiting(1)),
    ("16 callers", waiting(16)),
    ("256 callers", waiting(256)),
    ("16 callers, 64 at once each", batches()),
    ("five primaries, 256 callers", waiting(256, "cluster")),
]


def title_of(key: Key) -> str:
    place, operation, size, style, in_flight = key
    how = ("1 caller" if in_flight == 1 else f"{in_flight} callers") if style == "wait" else "16 × 64 at once"
    return f"{place}: {operation}, {size} B, {how}"


# What all runs say of one cell.


@dataclass
class Standing:
    """Ours beside a kind of client in all runs that have the cell."""

    ratios: list[float]
    won: int
    turns: int

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def __str__(self) -> str:
        return f"**{self.ratio:.2f}** ({min(self.ratios):.2f}–{max(self.ratios):.2f}), {self.won} of {self.turns} turns"


def standing(reports: list[Report], key: Key, wanted) -> Standing | None:
    runs = [ratios for report in reports if (ratios := report.ratios(key, wanted))]
    if not runs:
        return None
    turns = [ratio for ratios in runs for ratio in ratios]
    return Standing([statistics.median(ratios) for ratios in runs], sum(ratio > 1 for ratio in turns), len(turns))


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
        f"| {corner} | redis-client | ÷ the best client that is not C | ÷ the better hiredis (C) | ÷ hedis |",
        "|---|--:|---|---|---|",
    ]
    for title, key in cells:
        ours = reports[-1].ours(key)
        columns = [title, f"{rate(rate_of(ours))}<br>{micros(cost_of(ours))}", *(beside(reports, key, wanted) for wanted in KINDS)]
        out.append("| " + " | ".join(columns) + " |")
    return out


def behind(reports: list[Report], key: Key) -> list[str]:
    """Which kinds were ahead of ours in half of the turns or more."""
    names = ["a client that is not C", "hiredis", "hedis"]
    return [name for name, wanted in zip(names, KINDS) if (found := standing(reports, key, wanted)) and 2 * found.won <= found.turns]


def measured(reports: list[Report]) -> list[Report]:
    """The runs whose versions of the rows of the README are all there."""
    return [report for report in reports if all(report.ours(key) for _, key in LINES)]


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


def not_in_clusters(report: Report) -> str:
    return ", ".join(name for name, row in report.rows.items() if not row["cluster"])


# One run by itself.


def lines(report: Report) -> list[str]:
    """Every cell of a run that has ours: the ratio, and that of the worst turn."""
    out = [
        "| | redis-client | best that is not C | ours ÷ | better hiredis | ours ÷ | hedis | ours ÷ |",
        "|---|--:|---|--:|---|--:|--:|--:|",
    ]
    for key in report.cells:
        if not report.ours(key):
            continue
        columns = [title_of(key), rate(rate_of(report.ours(key)))]
        for wanted in KINDS:
            best = report.best(key, wanted)
            if best is None:
                columns += ["none", ""]
                continue
            ratios = report.ratios(key, wanted)
            name = "" if wanted is is_hedis else f"{best[0]}, "
            columns += [f"{name}{rate(rate_of(best[1]))}", f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"]
        out.append("| " + " | ".join(columns) + " |")
    return out


def by_run(reports: list[Report]) -> list[str]:
    """The rows of the README in every run: beside the best that is not C, and beside C."""
    out = ["| run | load average | " + " | ".join(title for title, _ in LINES) + " |", "|---|--:|" + "--:|" * len(LINES)]
    for report in reversed(reports):
        columns = []
        for _, key in LINES:
            found = [report.ratios(key, wanted) for wanted in (is_other, is_native)]
            columns.append(" / ".join(f"{statistics.median(ratios):.2f}" if ratios else "–" for ratios in found))
        out.append(f"| {report.run.name} | {report.load or '–'} | " + " | ".join(columns) + " |")
    worst = [
        " / ".join(f"{min(ratio for report in reports for ratio in report.ratios(key, wanted)):.2f}" for wanted in (is_other, is_native)) for _, key in LINES
    ]
    out.append("| the worst turn of all | | " + " | ".join(worst) + " |")
    return out


def polling(report: Report) -> str:
    """The part of its core that each row of the table used where few callers wait."""
    parts = []
    for title, key in LINES[:2]:
        rows = [(OURS, report.ours(key)), *(best for wanted in KINDS[:2] if (best := report.best(key, wanted)))]
        parts.append(f"with {title} " + ", ".join(f"{name} {100 * share_of(turns):.0f} %" for name, turns in rows))
    return "; ".join(parts)


# The picture.


def picture(report: Report, colours: dict) -> str:
    width, height, left, right, top, bottom = 860, 450, 64, 230, 46, 72
    series = []
    for (title, wanted), colour in zip(GROUPS, colours["lines"]):
        found = [(callers, best[1]) for callers in CALLERS if (best := report.best(waiting(callers), wanted))]
        # A run of before a language was measured.
        if not found:
            continue
        series.append((title, colour, [(callers, [sample.rate for sample in turns.values()]) for callers, turns in found]))
    highest = max(max(rates) for _, _, points in series for _, rates in points)
    scale = 200_000 * math.ceil(highest / 200_000)

    def across(callers: float) -> float:
        return left + (width - left - right) * math.log(callers) / math.log(CALLERS[-1])

    def up(value: float) -> float:
        return height - bottom - (height - top - bottom) * value / scale

    manifest = report.raw["manifest"]
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
        f"callers, on a logarithmic scale; medians, with the slowest and the fastest of {report.turns} turns",
        f"{report.run.date}, {manifest['cpu']}, server and client on a core each; of each language the fastest client that was measured",
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
