"""The runs of the gate, as docs/speed.md shows them: each by itself, and all turns pooled."""
import math
import statistics
from collections import Counter

from libraries import FULL
from runs import Run

# Bounds that rows had up to 2026-11-23 and that CONTRIBUTING.md no longer demands: what they reach now is said beside them.
FORMER = {
    ("GET, 16 threads x 64", "R"): 0.85,
    ("SET, 16 threads x 64", "R"): 0.85,
    ("GET, 64 threads waiting", "R"): 0.65,
    ("GET, 16 threads waiting", "R"): 0.33,
    ("GET, 1 thread waiting", "R1"): 2.00,
    ("GET, 1 thread waiting, no polling", "R1"): 0.90,
    ("cluster, 16 threads x 64", "RC"): 0.85,
    ("cluster, 256 threads waiting", "RC"): 0.75,
}


def quantile(freedom: int) -> float:
    """Of Student's t, for an interval of 95 %: the first terms of its series in 1 / freedom."""
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def pooled(rows: list[dict]) -> tuple[float, float, float, int] | None:
    """The geometric mean of the ratios of all turns, its interval, and how many turns."""
    logs = [math.log(ours / theirs) for row in rows for ours, theirs in row["pairs"]]
    if len(logs) < 4:
        return None
    centre = statistics.fmean(logs)
    half = quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(centre), math.exp(centre - half), math.exp(centre + half), len(logs)


def judged(what: str, bound: float, low: float, high: float) -> str:
    if is_cost(what):
        return "reached" if high <= bound else "**missed**" if low > bound else "undecided"
    return "reached" if low >= bound else "**missed**" if high < bound else "undecided"


def rows_of(runs: list[Run]) -> dict[tuple[str, str], list[dict]]:
    found: dict[tuple[str, str], list[dict]] = {}
    for run in runs:
        for row in run.document["rows"]:
            found.setdefault((row["what"], row["unit"]), []).append(row)
    return found


def is_full(row: dict) -> bool:
    return (row["client_cpu_share"] or 0) > FULL


def pooled_lines(runs: list[Run]) -> list[str]:
    """All turns of all runs together; with the bound of today, or the one that a row had."""
    turns = max(len(row["pairs"]) for run in runs for row in run.document["rows"])
    out = [
        f"All turns of the {len(runs)} runs together (up to {turns * len(runs)}, of as many revisions): geometric mean, and its 95 % interval. "
        "*: the generator used more than 80 % of its core in one of the runs. What the letters mean is said [below](#beside-redis-benchmark).",
        "",
        "| | bound | all turns | |",
        "|---|--:|--:|---|",
    ]
    for (what, unit), rows in rows_of(runs).items():
        found = pooled(rows)
        if found is None:
            continue
        ratio, low, high, _ = found
        bound, former = rows[-1]["must"], FORMER.get((what, unit))
        sign = "≤" if is_cost(what) else "≥"
        limit = bound if bound is not None else former
        demanded = "" if limit is None else f"{sign} {limit:.2f}" + (" up to 2026-11-23" if bound is None else "")
        verdict = "" if limit is None else judged(what, limit, low, high)
        star = "\\*" if any(map(is_full, rows)) else ""
        out.append(f"| {what}, {unit} | {demanded} | {ratio:.2f}{star} ({low:.2f}–{high:.2f}) | {verdict} |")
    return out


def block(runs: list[Run]) -> str:
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
        out.append("| " + " | ".join([f"{what}, {unit}", bound, *map(figure, found)]) + " |")
    return "\n".join(out)


def is_cost(what: str) -> bool:
    """Whether less is better."""
    return any(word in what for word in ("CPU", "memory", "late"))


def figure(row: dict | None) -> str:
    """A row of one run, as the gate itself judges it."""
    if row is None:
        return "–"
    full = "\\*" if is_full(row) else ""
    spread = f" ({row['interval'][0]:.2f}–{row['interval'][1]:.2f})" if row["interval"] else ""
    verdict = {"Stated": "", "Reached": ", reached"}.get(row["verdict"], f", **{row['verdict'].lower()}**")
    return f"{row['measured']:.2f}{full}{spread}{verdict}"
