"""Every run whose raw data are in this repository, and what those name of it."""
import gzip
import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from pages import ROOT, listed

RESULTS = ROOT / "compare" / "results"
LAB = ROOT / "docs" / "lab"
# Raw data of more bytes are kept compressed.
LARGE = 1_000_000
# Whoever reads a figure must be able to find out these of it.
FACTS = ["time", "revision", "machine", "kernel", "compiler", "server", "commands"]


def stored(path: Path) -> Path:
    """Where a file of raw data is: beside its name with .gz, if it is kept compressed."""
    packed = path.with_name(path.name + ".gz")
    return packed if packed.exists() and not path.exists() else path


def text_of(path: Path) -> str:
    """Raw data, compressed or not."""
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def pack(path: Path) -> None:
    """Compresses a file, without its name and time: the same bytes each time."""
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    path.unlink()


def unpacked() -> list[Path]:
    """Raw data that are too large to be kept as they are."""
    return sorted(path for folder in (RESULTS, LAB) for path in folder.rglob("*.json*") if path.suffix != ".gz" and path.stat().st_size > LARGE)


def charts() -> list[Path]:
    """Pages of charts that nothing links to: they can be made from the raw data, and are not kept."""
    return [page for page in listed("compare/results/*.html") if not any(f"({page.name})" in readme.read_text() for readme in page.parent.glob("README.md"))]


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
    def machine(self) -> str:
        """What a rate with few callers depends on: the clock of the kernel tells apart machines that wake a program fast or slowly."""
        named = {"": "machine", "Linux ": "kernel", "clock ": "clock"}
        return ", ".join(f"{what}{self.facts[fact]}" for what, fact in named.items() if self.facts.get(fact))

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


def counted_by_place(report: Path) -> str:
    """The same of the services, by the place that a goal is about: a report has places without goals."""
    places: dict[str, list[bool]] = {}
    for verdict, text in re.findall(r"^\| (met|\*\*missed\*\*) \|.*\| ([^|]*) \|$", report.read_text(), flags=re.MULTILINE):
        place = next((each for each in ("cluster", "both cores for all") if each in text), "a core each")
        places.setdefault(place, []).append(verdict == "met")
    return "; ".join(f"{sum(met)} of {len(met)} ({place})" for place, met in places.items()) or "none"


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
        "clock": said(manifest, "clock_source"),
        "compiler": f"ghc-{version[1]}" if version else compiler,
        "server": f"redis {redis[1]}" if redis else server,
        "commands": said(manifest, "options", "command", "commands"),
    }


def libraries(folder: Path) -> Run:
    raw, report = stored(folder / "raw.json"), folder / "COMPARISON-client.md"
    document = json.loads(text_of(raw))
    what = "libraries, first cells" if folder.name.endswith("-seed") else "libraries"
    return Run(what, raw, report, *described(document["manifest"]), counted(report, "^- reached", "^- (?:MISSED|NO RATIO)"), document)


def services(folder: Path) -> Run:
    raw, report = stored(folder / "cells.jsonl"), folder / "COMPARISON-rest.md"
    manifest = json.loads((folder / "manifest.json").read_text())
    cells = [json.loads(line) for line in text_of(raw).splitlines()]
    goals = counted_by_place(report)
    return Run("REST", raw, report, *described(manifest), goals, {"manifest": manifest, "cells": cells})


def notebook(raw: Path) -> Run:
    """A measurement of lab/ whose raw data lie beside the page that tells of it."""
    document = json.loads(text_of(raw))
    name = raw.name.split(".json")[0]
    own = raw.with_name(name + ".md")
    page = own if own.exists() else next((page for page in sorted(LAB.glob("*.md")) if f"({raw.name})" in page.read_text()), raw)
    facts = {
        **document,
        **document.get("machine", {}),
        "revision": ", ".join(document[side]["commit"][:7] for side in ("old", "new", "client") if side in document),
        "options": " ".join(f"{name}={value}" for name, value in document.get("settings", {}).items()),
        "server": said(document, "server").replace("redis_version:", "redis "),
    }
    return Run(name.lstrip("0123456789-"), raw, page, *described(facts), "none")


def another(folder: Path) -> Run:
    """A run of a kind that has no tables here: its lines of JSON or the first JSON in its folder, and the manifest in it or beside it."""
    found = {path: json.loads(text_of(path)) for path in sorted([*folder.glob("*.json"), *folder.glob("*.json.gz")])}
    if not found:
        raise SystemExit(f"{folder.relative_to(ROOT)} has no raw data")
    data = sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]) + [path for path in found if "manifest" not in path.name]
    raw = next(iter(data + list(found)))
    beside = next((document for path, document in found.items() if "manifest" in path.name), found.get(raw, {}))
    document = found[raw] if isinstance(found.get(raw), dict) else {}
    manifest = document.get("manifest") or (beside if isinstance(beside, dict) else {})
    date, facts = described(manifest)
    facts["server"] = facts["server"] or said(document.get("gate", {}), "server") or ", ".join(sorted({run["server"]["name"] for run in document.get("runs", []) if run.get("server")}))
    page = next(iter(sorted(folder.glob("*report*.md")) + sorted(folder.glob("*.md"))), raw)
    return Run(folder.name.lstrip("0123456789-"), raw, page, date or folder.name[:10], facts, "none", document)


def run_of(folder: Path) -> Run:
    if stored(folder / "raw.json").exists() and (folder / "COMPARISON-client.md").exists():
        return libraries(folder)
    if stored(folder / "cells.jsonl").exists():
        return services(folder)
    return another(folder)


def every_run() -> list[Run]:
    """All of them, the oldest first. What the quick forms leave behind is in no repository."""
    folders = [folder for folder in RESULTS.iterdir() if folder.is_dir() and not folder.name.startswith("quick-")]
    found = [run_of(folder) for folder in folders] + [notebook(raw) for raw in [*LAB.glob("*.json"), *LAB.glob("*.json.gz")]]
    return sorted(found, key=lambda run: run.order)
