"""What docs/campaign.md shows: the newest campaign beside the series of measurements that it follows."""
import json
from pathlib import Path

from runs import RESULTS, ROOT

SOURCE = ROOT / "compare" / "source-campaign.json"
PLACES = [("aof-everysec", "disk"), ("aof-everysec", "memory"), ("aof-always", "disk"), ("aof-always", "memory")]
SOAKED = ["aof-everysec", "aof-always"]

# By workload, persistence, place, bytes, callers, and whether it is a soak.
Cells = dict[tuple, dict]


def newest(suffix: str) -> Path | None:
    """The newest run of a part."""
    return max((folder for folder in RESULTS.glob(f"*-{suffix}") if (folder / "campaign.json").exists()), default=None)


def cells_of(folder: Path | None) -> Cells:
    """Those of Redis on this machine, without round trips that were added."""
    if folder is None:
        return {}
    runs = json.loads((folder / "campaign.json").read_text())["runs"]
    local = [run for run in runs if run["spec"]["axes"]["net"] == "local" and run["spec"]["axes"]["server"].startswith("redis")]
    return {key(run): run for run in local}


def key(run: dict) -> tuple:
    axes = run["spec"]["axes"]
    return (axes["workload"], axes["persistence"], axes["place"], int(axes["payload"]), int(axes["clients"]), run["name"].startswith("soak "))


def thousands(value: float | None) -> str:
    return "–" if value is None else f"{round(value):,}".replace(",", " ")


def ours(run: dict | None) -> str:
    """A rate; with a star where the load's own core was full."""
    if run is None:
        return "–"
    full = any("of the cores it could use" in note for note in run["notes"])
    return thousands(run["ops_per_sec"]) + ("\\*" if full else "")


def reference(run: dict | None) -> str:
    said = (run or {}).get("redis_benchmark")
    return thousands(said["ops_per_sec"]) if said else "–"


def of(folder: Path) -> str:
    """Where a part is, and how it was measured."""
    document = json.loads((folder / "campaign.json").read_text())
    cell = next(run for run in document["runs"] if not run["name"].startswith("soak "))
    page = f"../{folder.relative_to(ROOT).as_posix()}/report.md"
    return f"[{folder.name}]({page}), {len(cell['iterations'])} × {cell['spec']['duration_sec']:g} s for each cell"


def block() -> str:
    """The tables, with a dash where a campaign has no such cell."""
    parts = [newest(name) for name in ("campaign", "campaign-participant", "campaign-one-caller")]
    whole, participant, single = map(cells_of, parts)
    source = json.loads(SOURCE.read_text())
    out = [
        f"From {'; '.join(of(folder) for folder in parts if folder)}. *: the load's own core was full: the server could do more.",
        "",
        "| test | " + " | ".join(source["machines"]) + " | redis-benchmark here, disk: everysec, always | redis-client here, everysec: disk, memory | always: disk, memory |",
        "|---|" + "--:|" * (len(source["machines"]) + 3),
    ]
    for test in source["tests"]:
        cells = participant if test.get("participant") else whole
        runs = [cells.get((test["workload"], persistence, place, test["payload"], 50, False)) for persistence, place in PLACES]
        figures = [f"{reference(runs[0])}, {reference(runs[2])}", f"{ours(runs[0])}, {ours(runs[1])}", f"{ours(runs[2])}, {ours(runs[3])}"]
        out.append("| " + " | ".join([test["test"], *map(thousands, test["rates"]), *figures]) + " |")
    out += ["", "| one client | there | redis-benchmark here | redis-client here: disk, memory |", "|---|--:|--:|--:|"]
    for test in source["one_client"]:
        at = [("set", "aof-always", place, test["payload"], 1, False) for place in ("disk", "memory")]
        runs = [single.get(one) or whole.get(one) for one in at]
        out.append(f"| {test['test']} | {thousands(test['rate'])} | {reference(runs[0])} | {ours(runs[0])}, {ours(runs[1])} |")
    out += ["", "| SETs for a long time, 50 clients, 3 bytes | a second |", "|---|--:|"]
    out += [f"| there: {test['test']} | {thousands(test['rate'])} |" for test in source["long"]]
    for persistence in SOAKED:
        run = whole.get(("set", persistence, "disk", 3, 50, True))
        if run:
            out.append(f"| here: {run['spec']['duration_sec']:g} s, {persistence}, disk | {ours(run)} |")
    return "\n".join(out)
