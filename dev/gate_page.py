"""The runs of the gate, as docs/speed.md shows them: each by itself, and all together."""
import sys
from collections import Counter

from libraries import FULL
from runs import ROOT, Run

sys.path.insert(0, str(ROOT / "lab" / "pair"))
import judge

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


# What is set beside hiredis, and hiredis with the same load. It has two forms.
NATIVE = {
    "GET, 16 threads x 64": ("Batches OperationGet", "(HiredisBatches OperationGet)"),
    "SET, 16 threads x 64": ("Batches OperationSet", "(HiredisBatches OperationSet)"),
    "GET, 256 threads waiting": ("Waiting 256", "(HiredisWaiting 256)"),
    "GET, 1024 threads waiting": ("Waiting 1024", "(HiredisWaiting 1024)"),
    "cluster, keys of every slot, 16 threads x 64": ("ClusterBatches EverySlot", "HiredisClusterBatches"),
    "cluster, keys of every slot, 256 threads waiting": ("ClusterWaiting EverySlot", "HiredisClusterWaiting"),
}


def fair(document: dict) -> list[dict]:
    """The rows of a run. Beside hiredis each turn is set beside the form that was better in it; up to 2026-11-29 the gate
    chose one form for all turns, which flattered ours."""
    series = {one["probe"]: one["samples"] for one in document["gate"]["series"]}
    return [against_the_better(row, series) if row["unit"] == "H" else row for row in document["rows"]]


def against_the_better(row: dict, series: dict[str, list[dict]]) -> dict:
    ours, theirs = NATIVE[row["what"].removesuffix(": client CPU")]
    of, best = ("cpu_ns_per_op", min) if is_cost(row["what"]) else ("ops_per_sec", max)
    forms = zip(*(series[f"Hiredis {form} {theirs}"] for form in ("Loop", "Async")))
    pairs = [(mine[of], best(form[of] for form in turn)) for mine, turn in zip(series[ours], forms)]
    ratio, low, high = judge.interval([mine / other for mine, other in pairs])
    verdict = "stated" if row["must"] is None else judged(row["what"], row["must"], low, high).strip("*")
    return row | {"pairs": pairs, "measured": ratio, "interval": [low, high], "verdict": verdict.capitalize()}


def pooled(rows: list[dict]) -> tuple[float, float, float] | None:
    """The geometric mean of the runs' means, and its interval: the turns of one run resemble each other more than those of two."""
    means = [judge.interval([ours / theirs for ours, theirs in row["pairs"]])[0] for row in rows if row["pairs"]]
    return judge.interval(means) if len(means) > 2 else None


def judged(what: str, bound: float, low: float, high: float) -> str:
    if is_cost(what):
        return "reached" if high <= bound else "**missed**" if low > bound else "undecided"
    return "reached" if low >= bound else "**missed**" if high < bound else "undecided"


def rows_of(runs: list[Run]) -> dict[tuple[str, str], list[dict]]:
    found: dict[tuple[str, str], list[dict]] = {}
    for run in runs:
        for row in fair(run.document):
            found.setdefault((row["what"], row["unit"]), []).append(row)
    return found


def is_full(row: dict) -> bool:
    return (row["client_cpu_share"] or 0) > FULL


def pooled_lines(runs: list[Run]) -> list[str]:
    """All runs together; with the bound of today, or the one that a row had."""
    out = [
        f"The {len(runs)} runs together (of as many revisions): the geometric mean of their means, and its 95 % interval. It is wide because there are few runs, and they differ. "
        "*: the generator used more than 80 % of its core in one of the runs. What the letters mean is said [below](#beside-redis-benchmark).",
        "",
        "| | bound | all runs | |",
        "|---|--:|--:|---|",
    ]
    for (what, unit), rows in rows_of(runs).items():
        found = pooled(rows)
        if found is None:
            continue
        ratio, low, high = found
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
    rows = [fair(run.document) for run in runs]
    counts = [Counter(row["verdict"].lower() for row in found) for found in rows]
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
    tables = [{(row["what"], row["unit"]): row for row in found} for found in rows]
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
    """A row of one run."""
    if row is None:
        return "–"
    full = "\\*" if is_full(row) else ""
    spread = f" ({row['interval'][0]:.2f}–{row['interval'][1]:.2f})" if row["interval"] else ""
    verdict = {"Stated": "", "Reached": ", reached"}.get(row["verdict"], f", **{row['verdict'].lower()}**")
    return f"{row['measured']:.2f}{full}{spread}{verdict}"
