"""What the measurements beside the pairs keep, and where."""

import datetime
import json
import os
import pathlib

import builds
import pair

RESULTS = pathlib.Path(__file__).resolve().parent.parent.parent / "results"


def about():
    """When and where it was measured, and by which compiler."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": pair.machine(),
        "load": os.getloadavg(),
        "idle_at_start": os.environ.get("QUIET_IDLE"),
        "compiler": builds.output("ghc", "--version"),
    }


def keep(kind, document, page):
    """Writes the raw data and the page to results/KIND, by the time of the measurement, and prints the page."""
    folder = RESULTS / kind
    folder.mkdir(parents=True, exist_ok=True)
    name = document["date"][:19].replace(":", "")
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (folder / f"{name}.md").write_text(page)
    print(page + f"\nresults/{kind}/{name}.md")


def numbers(text):
    """An option's whole numbers, with commas between."""
    return [int(word) for word in text.split(",")]
