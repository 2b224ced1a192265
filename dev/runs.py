"""Every run whose raw data are in this repository, and what those name of it."""
import json
import re
import statistics
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "compare" / "results"
LAB = ROOT / "docs" / "lab"
# Whoever reads a figure must be able to find out these of it.
FACTS = ["time", "revision", "machine", "kernel", "compiler", "server", "commands"]


@dataclass
class Run:
    """One run: where its raw data are, and what they say of when, where and of what."""

    what: str
    raw: Path
    report: Path
    date: str
    facts: dict[str, str | None]
    goals: str = ""
    document: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.raw.stem if self.raw.parent == LAB else self.raw.parent.name

    @property
    def order(self) -> tuple[str, str]:
        """By time; who kept the day only comes by the name of the folder."""
        return (f"{self.date} {self.facts['time'] or ''}", self.name)

    @property
    def lacks(self) -> list[str]:
        return [name for name in FACTS if not self.facts.get(name)]


def moment(text: str) -> tuple[str, str | None]:
    """The day, and the time of day if it is said."""
    return (text[:10], text[11:16] if len(text) > 10 else None)


def counted(report: Path, reached: str, missed: str) -> str:
    """How many goals its own report says were reached, of how many."""
    text = report.read_text()
    good, bad = (len(re.findall(pattern, text, flags=re.MULTILINE)) for pattern in (reached, missed))
    return f"{good} of {good + bad}" if good + bad else "none"


def said(manifest: dict, *names: str) -> str:
    """What stands under the first of these names that is there."""
    for name in names:
        value = manifest.get(name)
        if value:
            return " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return ""


def described(manifest: dict) -> tuple[str, dict[str, str | None]]:
    """The day and the facts of a manifest. The programs that write them have names of their own."""
    started = manifest.get("started")
    date, time = moment(datetime.fromtimestamp(started / 1e9, timezone.utc).isoformat() if started else said(manifest, "date"))
    compiler = said(manifest, "compiler") or (f"ghc-{manifest['ghc']}" if "ghc" in manifest else "")
    version = re.search(r"version (\d\S*)", compiler)
    server = said(manifest, "server", "redis-server", "redis")
    redis = re.search(r"v=(\S+)", server)
    return date, {
        "time": time,
        "revision": said(manifest, "revision"),
        "machine": said(manifest, "cpu", "processor"),
        "kernel": said(manifest, "kernel"),
        "compiler": f"ghc-{version[1]}" if version else compiler,
        "server": f"redis {redis[1]}" if redis else server,
        "commands": said(manifest, "options", "command", "commands"),
    }


def libraries(folder: Path) -> Run:
    raw, report = folder / "raw.json", folder / "COMPARISON-client.md"
    document = json.loads(raw.read_text())
    return Run("libraries", raw, report, *described(document["manifest"]), counted(report, "^- reached", "^- (?:MISSED|NO RATIO)"), document)


def services(folder: Path) -> Run:
    raw, report = folder / "cells.jsonl", folder / "COMPARISON-rest.md"
    manifest = json.loads((folder / "manifest.json").read_text())
    cells = [json.loads(line) for line in raw.read_text().splitlines()]
    goals = counted(report, r"^\| met \|", r"^\| \*\*missed\*\* \|")
    return Run("REST", raw, report, *described(manifest), goals, {"manifest": manifest, "cells": cells})


def notebook(raw: Path) -> Run:
    """A measurement of lab/ whose raw data lie beside the page that tells of it."""
    document = json.loads(raw.read_text())
    own = raw.with_suffix(".md")
    page = own if own.exists() else next((page for page in sorted(LAB.glob("*.md")) if f"({raw.name})" in page.read_text()), raw)
    facts = {
        **document,
        **document.get("machine", {}),
        "revision": ", ".join(document[side]["commit"][:7] for side in ("old", "new", "client") if side in document),
        "options": " ".join(f"{name}={value}" for name, value in document.get("settings", {}).items()),
        "server": said(document, "server").replace("redis_version:", "redis "),
    }
    return Run(raw.stem.lstrip("0123456789-"), raw, page, *described(facts), "none")


def another(folder: Path) -> Run:
    """A run of a kind that has no tables here: its lines of JSON or the first JSON in its folder, and the manifest in it or beside it."""
    found = {path: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise SystemExit(f"{folder.relative_to(ROOT)} has no raw data")
    data = sorted(folder.glob("*.jsonl")) + [path for path in found if "manifest" not in path.name]
    raw = next(iter(data + list(found)))
    beside = next((document for path, document in found.items() if "manifest" in path.name), found.get(raw, {}))
    document = found[raw] if isinstance(found.get(raw), dict) else {}
    manifest = document.get("manifest") or (beside if isinstance(beside, dict) else {})
    date, facts = described(manifest)
    facts["server"] = facts["server"] or said(document.get("gate", {}), "server") or ", ".join(sorted({run["server"]["name"] for run in document.get("runs", []) if run.get("server")}))
    page = next(iter(sorted(folder.glob("*report*.md")) + sorted(folder.glob("*.md"))), raw)
    return Run(folder.name.lstrip("0123456789-"), raw, page, date or folder.name[:10], facts, "none", document)


def run_of(folder: Path) -> Run:
    if (folder / "raw.json").exists() and (folder / "COMPARISON-client.md").exists():
        return libraries(folder)
    if (folder / "cells.jsonl").exists():
        return services(folder)
    return another(folder)


def every_run() -> list[Run]:
    """All of them, the oldest first. What the quick forms leave behind is in no repository."""
    folders = [folder for folder in RESULTS.iterdir() if folder.is_dir() and not folder.name.startswith("quick-")]
    found = [run_of(folder) for folder in folders] + [notebook(raw) for raw in LAB.glob("*.json")]
    return sorted(found, key=lambda run: run.order)


SCENARIOS = {"single": "GET one", "list": "GET list", "post": "POST", "mixed": "mixed"}
PLACES = {
    ("Standalone", "Pinned"): "one Redis, a core each",
    ("Standalone", "Free"): "one Redis, both cores for all",
    ("Cluster", "Pinned"): "a cluster of five, a core each",
    ("Cluster", "Free"): "a cluster of five, both cores for all",
}


@dataclass
class Service:
    """One cell of a REST run: ours beside the fastest in C#. Without ratios where C# had too little
    warm-up in a round; the worst round is that of those in which it had enough."""

    place: str
    title: str
    ours: float
    rival: str
    theirs: float
    warmed: float
    ratio: float | None = None
    cpu: float | None = None
    worst: float | None = None

    @property
    def line(self) -> str:
        if self.ratio is None:
            beside = f"none: warmed up for {self.warmed:g} s"
        else:
            beside = f"{self.ratio:.2f}" + (f" (worst round {self.worst:.2f})" if self.worst is not None else "")
        cpu = "" if self.cpu is None else f"{self.cpu:.2f}"
        return f"| {self.title}, {self.place} | {self.ours / 1000:.1f} k/s | {self.rival}, {self.theirs / 1000:.1f} k/s | {beside} | {cpu} |"


def services_of(run: Run) -> list[Service]:
    groups: dict[tuple, dict[str, dict[int, dict]]] = {}
    for one in run.document["cells"]:
        cell = one["cell"]
        key = (cell["topology"], cell["layout"], cell["scenario"], cell["connections"])
        if not one["outcome"]["problems"]:
            groups.setdefault(key, {}).setdefault(cell["row"], {})[cell["iteration"]] = one
    found = []
    for (topology, layout, scenario, connections), rows in groups.items():
        ours = rows.get("haskell")
        others = {name: rounds for name, rounds in rows.items() if name.startswith("dotnet") and not name.endswith("-naive")}
        if not ours or not others:
            continue
        best = max(others, key=lambda name: rate_of(others[name]))
        theirs = others[best]
        cell = Service(
            PLACES[topology, layout],
            f"{SCENARIOS.get(scenario, scenario)}, {connections} connections",
            rate_of(ours),
            best.removeprefix("dotnet-"),
            rate_of(theirs),
            min(float(one["facts"].get("warm-up", 0)) for one in theirs.values()),
        )
        # A round counts where C# had its warm-up; the ratio of the cell, only where it always had.
        warm = [each for each in ours if each in theirs and warmed_up(theirs[each])]
        cell.worst = min((ours[each]["outcome"]["requestsPerSecond"] / theirs[each]["outcome"]["requestsPerSecond"] for each in warm), default=None)
        if all(map(warmed_up, theirs.values())):
            cell.ratio = cell.ours / cell.theirs
            cell.cpu = mean(ours, "cpuPerRequest") / mean(theirs, "cpuPerRequest")
        found.append(cell)
    return found


def warmed_up(one: dict) -> bool:
    """Whether a service in C# had time to be compiled for good."""
    return float(one["facts"].get("warm-up", 0)) >= 10


def service_lines(run: Run) -> list[str]:
    """A REST run as a table; empty if it has nothing in C#."""
    cells = services_of(run)
    head = ["| | haskell | fastest C# | of it | processor time of it |", "|---|--:|---|--:|--:|"]
    return head + [cell.line for cell in cells] if cells else []


def mean(rounds: dict[int, dict], name: str) -> float:
    return statistics.fmean(one["outcome"][name] for one in rounds.values())


def rate_of(rounds: dict[int, dict]) -> float:
    return mean(rounds, "requestsPerSecond")
