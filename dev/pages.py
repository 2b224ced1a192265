"""The project's own files."""
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def listed(pattern: str) -> list[Path]:
    """Those that git knows, and those that are new. Ends the program if there are none: nothing would be checked."""
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = [ROOT / name for name in told.stdout.split("\0") if name and (ROOT / name).exists()]
    if not found:
        raise SystemExit(f"no {pattern} was found")
    return found


def pages() -> list[Path]:
    """All that is prose."""
    return listed("*.md")
