#!/usr/bin/env python3
"""Tests of what pair.py decides, and of the load against servers of its own.

Run by scripts/verify.sh; by hand: lab/pair/test_pair.py, after scripts/cabal-env.sh was
sourced.
"""

import contextlib
import io
import math
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import builds
import judge
import pair
import report
import rows
import servers

ROW = rows.ROWS[0]


def runs(old_rates, new_rates, old_cpu=1000, new_cpu=1000):
    """Runs of a second each, at these rates, with this processor time per command."""
    return [
        {"row": ROW.name, "pair": number, "side": side, "commands": speed, "wall_ns": 10**9, "cpu_ns": speed * cost, "problem": None}
        for number, both in enumerate(zip(old_rates, new_rates))
        for side, speed, cost in zip(("old", "new"), both, (old_cpu, new_cpu))
    ]


class Intervals(unittest.TestCase):
    def test_students_t_is_that_of_the_printed_tables(self):
        for freedom, expected in ((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (11, 2.201), (12, 2.179), (30, 2.042), (1000, 1.962)):
            self.assertAlmostEqual(judge.t_quantile(freedom), expected, places=3)

    def test_an_interval_is_of_the_logarithms_and_so_of_the_inverse_too(self):
        ratio, low, high = judge.interval([math.exp(number) for number in (-0.1, 0, 0.1)])
        self.assertAlmostEqual(ratio, 1)
        self.assertAlmostEqual(math.log(low), -0.24841, places=4)
        self.assertAlmostEqual(math.log(high), 0.24841, places=4)

    def test_one_pair_has_no_interval_and_decides_nothing(self):
        line = judge.judged(ROW, runs([1000], [10]))
        self.assertEqual((line["rate"]["low"], line["verdict"]), (None, judge.UNDECIDED))

    def test_an_interval_holds_the_true_ratio_nineteen_times_in_twenty(self):
        source = random.Random(1)
        held = 0
        for _ in range(2000):
            _, low, high = judge.interval([math.exp(source.gauss(0, 0.05)) for _ in range(12)])
            held += low <= 1 <= high
        self.assertTrue(1860 <= held <= 1940, held)


class Verdicts(unittest.TestCase):
    def verdict(self, *arguments, **keywords):
        return judge.judged(ROW, runs(*arguments, **keywords))["verdict"]

    def test_a_row_fails_only_if_the_whole_interval_of_its_rate_is_below_the_bound(self):
        self.assertEqual(self.verdict([1000] * 4, [940, 950, 945, 955]), judge.FAILS)
        self.assertEqual(self.verdict([1000] * 4, [900, 990, 940, 1000]), judge.UNDECIDED)
        self.assertEqual(self.verdict([1000] * 4, [980, 985, 990, 995]), judge.HOLDS)

    def test_a_row_fails_by_its_processor_time_alone(self):
        self.assertEqual(self.verdict([1000] * 4, [1000] * 4, new_cpu=1060), judge.FAILS)
        self.assertEqual(self.verdict([1000] * 4, [1000] * 4, new_cpu=1040), judge.HOLDS)

    def test_a_drift_that_falls_on_both_sides_of_a_pair_does_not_widen_the_interval(self):
        line = judge.judged(ROW, runs([1000, 2000, 3000, 4000], [990, 1980, 2970, 3960]))
        self.assertAlmostEqual(line["rate"]["low"], 0.99)
        self.assertAlmostEqual(line["rate"]["high"], 0.99)

    def test_a_row_with_a_run_that_went_wrong_is_not_valid_though_the_others_hold(self):
        broken = runs([1000] * 4, [1000] * 4)
        broken[3]["problem"] = "status 1"
        line = judge.judged(ROW, broken)
        self.assertEqual((line["verdict"], line["pairs"], line["problems"]), (judge.INVALID, 3, ["status 1"]))

    def test_a_row_without_a_pair_is_not_valid(self):
        self.assertEqual(judge.judged(ROW, [])["verdict"], judge.INVALID)


class Runs(unittest.TestCase):
    def run_of(self, counted, text, status=0):
        calls = iter([100, 100 + counted])
        place = mock.Mock(argument="server:1", calls=lambda _: next(calls))
        done = mock.Mock(returncode=status, stdout=text, stderr="it broke")
        with mock.patch.object(pair.subprocess, "run", return_value=done):
            return pair.run(ROW, 1, "new", mock.Mock(load="pair-load"), place, 2.0)

    def test_a_run_whose_count_is_not_the_servers_is_not_valid(self):
        text = '{"commands": 900, "wall_ns": 1, "cpu_ns": 1, "total": 1000}'
        self.assertIsNone(self.run_of(1000, text)["problem"])
        self.assertIn("the servers 999", self.run_of(999, text)["problem"])

    def test_a_run_that_ends_with_an_error_is_not_valid(self):
        self.assertIn("it broke", self.run_of(0, "", status=1)["problem"])

    def test_a_run_in_which_nothing_was_done_is_not_valid(self):
        self.assertIsNotNone(self.run_of(0, '{"commands": 0, "wall_ns": 1, "cpu_ns": 1, "total": 0}')["problem"])


class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = builds.Build(load=builds.own_program("pair-load"), about={})
        running = contextlib.ExitStack()
        cls.addClassCleanup(running.close)
        cls.places = running.enter_context(servers.running(builds.own_program("pair-servers"), ["pinned", "free", "cluster"]))
        for place in cls.places.values():
            builds.output(str(cls.build.load), "fill", place.argument)

    def test_every_row_runs_and_the_servers_count_as_the_load_does(self):
        for row in rows.ROWS:
            with self.subTest(row.name):
                found = pair.run(row, 1, "new", self.build, self.places[row.place], 0.2)
                self.assertIsNone(found["problem"])
                self.assertTrue(0.2e9 <= found["wall_ns"] < 2e9, found)
                self.assertTrue(0 < found["cpu_ns"] <= 2.1 * found["wall_ns"], found)
                self.assertLess(found["commands"], found["total"])

    def test_a_value_that_is_not_right_ends_a_run(self):
        wrong, right = "short", "v" * 512
        for name in ("get-batch", "get-16", "mget-100"):
            row = next(row for row in rows.ROWS if row.name == name)
            with self.subTest(name):
                self.set_first_key(wrong)
                found = pair.run(row, 1, "new", self.build, self.places["pinned"], 0.2)
                self.set_first_key(right)
                self.assertIn("not the expected one", found["problem"] or "")

    def set_first_key(self, value):
        with socket.create_connection(("127.0.0.1", self.places["pinned"].ports[0])) as connection:
            connection.sendall(f"SET key:000000000000 {value}\r\n".encode())
            self.assertEqual(connection.recv(100), b"+OK\r\n")

    def test_a_load_without_a_server_fails(self):
        done = subprocess.run([self.build.load, "run", "server:1", "get", "1", "1", "0.1", "0.1"], capture_output=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)


class Quiet(unittest.TestCase):
    def test_a_busy_machine_ends_the_program_with_the_status_of_the_script(self):
        with mock.patch.object(builds.subprocess, "run", return_value=mock.Mock(returncode=2, stdout="")), self.assertRaises(SystemExit) as ended:
            builds.quiet()
        self.assertEqual(ended.exception.code, 2)

    def test_what_is_kept_names_the_idle_share_that_was_seen(self):
        with mock.patch.dict(os.environ), mock.patch.object(builds.subprocess, "run", return_value=mock.Mock(returncode=0, stdout="98.7 %\n")):
            builds.quiet()
            self.assertEqual(os.environ["QUIET_IDLE"], "98.7 %")


class Orders(unittest.TestCase):
    def taken(self, seed):
        options = mock.Mock(seed=seed, pairs=20, rows=rows.ROWS[:3], seconds=1)
        found = []

        def fake(row, number, side, *_):
            return {"row": row.name, "pair": number, "side": side, "commands": 1, "wall_ns": 1, "cpu_ns": 1, "problem": None}

        with mock.patch.object(pair, "run", fake), mock.patch.object(pair, "say"):
            pair.take_pairs(options, {"old": None, "new": None}, {"pinned": None}, found)
        return found

    def test_every_pair_has_one_run_of_each_side_next_to_each_other(self):
        found = self.taken(1)
        self.assertEqual(len(found), 20 * 3 * 2)
        for one, other in zip(found[::2], found[1::2]):
            self.assertEqual((one["row"], one["pair"]), (other["row"], other["pair"]))
            self.assertEqual({one["side"], other["side"]}, {"old", "new"})

    def test_either_side_goes_first_and_the_seed_decides(self):
        first = [run["side"] for run in self.taken(1)[::2]]
        self.assertTrue(15 <= first.count("old") <= 45, first)
        self.assertEqual(self.taken(7), self.taken(7))
        self.assertNotEqual(self.taken(7), self.taken(8))


class Projects(unittest.TestCase):
    TEXT = "packages:\n  client\n  tool\n\noptimization: 2\n\n-- a comment\nshared: False\n"

    def test_a_project_keeps_its_settings_and_not_its_packages(self):
        self.assertEqual(builds.project_settings(self.TEXT), "optimization: 2\n\n-- a comment\nshared: False\n")

    def test_a_new_file_counts_among_what_is_not_committed(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "client").mkdir()
            (tree / "client" / "Old.hs").write_text("old")
            builds.output("git", "init", "--quiet", where=tree)
            builds.output("git", "add", ".", where=tree)
            builds.output("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first", where=tree)
            (tree / "elsewhere").write_text("no part of the library")
            self.assertIsNone(builds.changes(tree))
            seen = set()
            for text in ("one", "two"):
                (tree / "client" / "New.hs").write_text(text)
                seen.add(builds.changes(tree))
            self.assertEqual((len(seen), None in seen), (2, False))

    def test_each_side_is_built_of_its_own_library_and_the_same_load(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "cabal.project").write_text(self.TEXT)
            source = tree / "client" / "src" / "Redis"
            source.mkdir(parents=True)
            (source / "Client.hs").write_text("awaitReply :: Pending a -> IO a\n")
            builds.write_project(tree / "written", tree)
            text = (tree / "written").read_text()
        self.assertIn(f"  {tree / 'client'}\n", text)
        self.assertIn(f"  {builds.HERE}\n", text)
        self.assertIn("optimization: 2\n", text)
        self.assertNotIn("tool", text)


class Reports(unittest.TestCase):
    def document(self, lines, program="cafe"):
        side = {"commit": "0123456789abcdef", "subject": "A subject", "changes": None, "program": "c0ffee"}
        return {
            "date": "2026-01-01T00:00:00+00:00",
            "old": side,
            "new": {**side, "changes": "feed", "program": program},
            "machine": {"processor": "a processor", "cores": 2, "kernel": "6"},
            "compiler": "a compiler",
            "server": "redis 7",
            "settings": {"pairs": 4, "seconds": 2, "warmup": 0.5, "rate_bound": 0.97, "cpu_bound": 1.05},
            "rows": lines,
        }

    def test_the_table_has_both_ratios_their_intervals_and_the_verdict(self):
        text = report.markdown(self.document([judge.judged(ROW, runs([1000] * 4, [940, 950, 945, 955], new_cpu=1020))]))
        line = next(line for line in text.splitlines() if "`get-batch`" in line)
        for part in ("0.947", "0.937–0.958", "1 000 → 948", "1.020–1.020", "FAILS (rate FAILS, processor time holds)"):
            self.assertIn(part, line)

    def test_what_was_wrong_with_a_row_is_said(self):
        broken = runs([1000] * 4, [1000] * 4)
        broken[0]["problem"] = "it did not end"
        document = self.document([judge.judged(ROW, broken), judge.judged(rows.ROWS[1], [])])
        self.assertIn("- get-batch: it did not end", report.markdown(document))
        self.assertIn("INVALID", report.console(document))


    def test_that_both_sides_are_the_same_program_is_said(self):
        self.assertIn("one and the same program", report.markdown(self.document([], program="c0ffee")))
        self.assertNotIn("one and the same program", report.markdown(self.document([])))


class Options(unittest.TestCase):
    def parsed(self, *arguments):
        with mock.patch.object(sys, "argv", ["pair.py", *arguments]), contextlib.redirect_stderr(io.StringIO()):
            return pair.parsed()

    def test_rows_are_chosen_by_name_and_unknown_ones_refused(self):
        self.assertEqual([row.name for row in self.parsed("--revision", "x", "--rows", "n2-256,get-1").rows], ["get-1", "n2-256"])
        self.assertEqual(self.parsed("--revision", "x").rows, rows.ROWS)
        with self.assertRaises(SystemExit):
            self.parsed("--revision", "x", "--rows", "get-2")

    def test_a_revision_must_be_named(self):
        with self.assertRaises(SystemExit):
            self.parsed()


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    wrong = len(outcome.failures) + len(outcome.errors)
    print(f"{outcome.testsRun - wrong} passed, {wrong} failed")
    sys.exit(1 if wrong else 0)
