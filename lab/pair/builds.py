"""Both sides of a pair, each built from its own library and the one load program."""

import dataclasses
import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACE = ROOT / "build" / "pair"


class Trouble(Exception):
    """What keeps the pairs from being measured, in a line."""


@dataclasses.dataclass
class Build:
    load: pathlib.Path
    about: dict


def output(*arguments, where=ROOT):
    done = subprocess.run(arguments, cwd=where, capture_output=True, text=True)
    if done.returncode != 0:
        raise Trouble(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout.strip()


def quiet():
    """Waits, after everything is built, until no other program keeps the machine busy; ends the program if one goes on. What is kept names the idle share."""
    done = subprocess.run([ROOT / "scripts" / "quiet.sh", *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    os.environ["QUIET_IDLE"] = done.stdout.strip()


def commit_of(revision):
    return output("git", "rev-parse", "--verify", "--quiet", revision + "^{commit}")


def revision_build(revision):
    """The named revision, in a git worktree of its own that stays for the next time."""
    try:
        commit = commit_of(revision)
    except Trouble:
        raise Trouble(f"there is no revision {revision}") from None
    place = PLACE / commit[:12]
    tree = place / "tree"
    if not tree.exists():
        place.mkdir(parents=True, exist_ok=True)
        output("git", "worktree", "prune")
        output("git", "worktree", "add", "--detach", str(tree), commit)
    if output("git", "rev-parse", "HEAD", where=tree) != commit or output("git", "status", "--porcelain", where=tree):
        raise Trouble(f"{tree} is no longer {revision} as it was; remove it with git worktree remove --force")
    return build(place, tree)


def tree_build(tree):
    """A working tree as it is."""
    tree = pathlib.Path(tree).resolve()
    name = "working" if tree == ROOT else "tree-" + hashlib.sha256(str(tree).encode()).hexdigest()[:12]
    return build(PLACE / name, tree)


def build(place, tree):
    if not (tree / "client" / "redis-client.cabal").exists():
        raise Trouble(f"{tree} has no client/redis-client.cabal")
    place.mkdir(parents=True, exist_ok=True)
    write_project(place / "cabal.project", tree)
    cabal = ["cabal", "--builddir", str(place / "dist")]
    flags = ["--disable-tests", "--disable-benchmarks"]
    done = subprocess.run([cabal[0], "build", "-v1", *cabal[1:], *flags, "exe:pair-load"], cwd=place, stdout=2)
    if done.returncode != 0:
        raise Trouble(f"the library of {tree} and the load program do not build together")
    load = pathlib.Path(output(cabal[0], "list-bin", "-v0", *cabal[1:], *flags, "exe:pair-load", where=place))
    return Build(load=load, about=about(tree, load))


def write_project(path, tree):
    """The tree's own settings, with its library and our load program as the packages."""
    text = project_settings((tree / "cabal.project").read_text())
    packages = [tree / "client", HERE, ROOT / "testkit"]
    text = "packages:\n" + "".join(f"  {package}\n" for package in packages) + text
    # One name of the library has changed.
    if "awaitReply ::" not in (tree / "client" / "src" / "Redis" / "Client.hs").read_text():
        text += "package redis-client-pair\n  flags: +waits-by-wait\n"
    # Written anew only if it changes, as cabal would start over.
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def project_settings(text):
    """A cabal.project without its packages."""
    kept, inside = [], False
    for line in text.splitlines():
        if line[:1] not in ("", " ", "\t"):
            inside = line.split(":")[0] == "packages"
        if not inside:
            kept.append(line)
    return "\n".join(kept) + "\n"


def changes(tree):
    """Of what is not committed: enough to know it again. New files are built, too."""
    places = ("--", "client", "cabal.project")
    difference = output("git", "diff", "HEAD", *places, where=tree)
    for name in output("git", "ls-files", "--others", "--exclude-standard", "-z", *places, where=tree).split("\0"):
        if name:
            difference += f"\n{name}\n" + (tree / name).read_text(errors="replace")
    return hashlib.sha256(difference.encode()).hexdigest()[:12] if difference else None


def about(tree, load):
    return {
        "commit": output("git", "rev-parse", "HEAD", where=tree),
        "subject": output("git", "log", "-1", "--format=%s", where=tree),
        "changes": changes(tree),
        # The same for both sides: whatever differs is chance.
        "program": hashlib.sha256(load.read_bytes()).hexdigest()[:12],
    }


def own_program(name):
    """A program of this folder, built of this tree. That of the servers needs no client."""
    done = subprocess.run(["cabal", "build", "-v1", f"exe:{name}"], cwd=ROOT, stdout=2)
    if done.returncode != 0:
        raise Trouble(f"{name} does not build")
    return pathlib.Path(output("cabal", "list-bin", "-v0", f"exe:{name}"))
