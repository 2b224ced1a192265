#!/usr/bin/env python3
"""Tests what dev/figures.py says of runs, by runs that are made up."""
import unittest
from pathlib import Path

from libraries import LINES, OURS, Key, Report, by_clock, first_cells, headline, is_native, is_other, measured, standing, title_of, waiting
from runs import RESULTS, Run

LANGUAGES = {OURS: "Haskell", "hiredis": "C", "StackExchange.Redis 1": "C#", "StackExchange.Redis 2": "C#", "redigo": "Go"}
USUAL = dict.fromkeys(LANGUAGES, "1")


def report(rates: dict[Key, dict[str, list[float]]], versions: dict[str, str] = USUAL) -> Report:
    """A run in which each row had these rates, one in each turn."""
    rows = [{"row": name, "version": version, "language": LANGUAGES[name]} for name, version in versions.items()]
    samples = [
        {"cell": key._asdict(), "row": row, "iteration": turn, "ops_per_sec": rate, "cpu_ns_per_op": 1000, "problems": []}
        for key, found in rates.items()
        for row, turns in found.items()
        for turn, rate in enumerate(turns)
    ]
    raw = RESULTS / "made-up" / "raw.json"
    return Report(Run("libraries", raw, raw, "2026-01-01", {"clock": "tsc"}, "", {"rows": rows, "samples": samples}))


def whole(ours: float, other: float, versions: dict[str, str] = USUAL) -> Report:
    """A run that has all rows of the README, at one rate each."""
    return report({key: {OURS: [ours], "redigo": [other], "hiredis": [1000]} for _, key in LINES}, versions)


class Figures(unittest.TestCase):
    def test_a_turn_is_set_beside_the_fastest_of_that_turn(self):
        key = waiting(1)
        run = report({key: {OURS: [90, 90, 90], "redigo": [100, 10, 50], "StackExchange.Redis 1": [10, 100, 45]}})
        self.assertEqual(run.ratios(key, is_other), [0.9, 0.9, 1.8])
        # By medians ours would be ahead: 90 beside 50.
        self.assertEqual(standing([run], key, is_other).ratio, 0.9)

    def test_only_runs_beside_the_same_versions_are_pooled(self):
        old, new = whole(200, 100, USUAL | {"redigo": "0"}), whole(90, 100)
        self.assertEqual(measured([old, new]), [new])
        self.assertEqual(measured([old, whole(80, 100), new])[1:], [new])
        fewer = whole(200, 100, {name: version for name, version in USUAL.items() if name != "StackExchange.Redis 2"})
        self.assertEqual(measured([fewer, new]), [new])

    def test_our_own_version_does_not_matter(self):
        old, new = whole(200, 100, USUAL | {OURS: "0"}), whole(90, 100)
        self.assertEqual(measured([old, new]), [old, new])

    def test_a_run_of_other_cells_is_not_the_newest(self):
        usual, other = whole(90, 100), report({waiting(16, key_size=512): {OURS: [1], "redigo": [2]}})
        self.assertEqual(measured([usual, other]), [usual])

    def test_other_keys_and_connections_are_cells_of_their_own(self):
        keys = [waiting(16), waiting(16, key_size=512), waiting(16, connections=4), waiting(16, keys=5), waiting(16, seed=2)]
        run = report({key: {OURS: [100 * place], "hiredis": [100]} for place, key in enumerate(keys)})
        self.assertEqual([run.ratios(key, is_native) for key in keys], [[0], [1], [2], [3], [4]])
        self.assertEqual(len({title_of(key) for key in keys}), len(keys))
        self.assertEqual(title_of(waiting(16, key_size=512, connections=4)), "standalone: GET hit, 512 B, 16 callers, keys of 512 B, 4 connections")

    def test_the_line_on_speed_says_where_ours_is_behind(self):
        said = headline([whole(110, 100)])
        self.assertTrue(said.startswith("ahead of the fastest client that is not in C with 1 caller (10 %), with 16 callers (10 %),"), said)
        self.assertIn("; behind hiredis, which is in C, with 1 caller (809 %)", said)
        said = headline([whole(50, 100)])
        self.assertNotIn("ahead", said)
        self.assertTrue(said.startswith("behind the fastest client that is not in C with 1 caller (100 %)"), said)

    def test_a_mark_stands_where_half_of_the_turns_were_lost(self):
        key = waiting(1)
        run = report({key: {OURS: [100, 100], "redigo": [90, 110], "hiredis": [90, 90]}})
        self.assertTrue(str(standing([run], key, is_other)).startswith("▼ "))
        self.assertFalse(str(standing([run], key, is_native)).startswith("▼ "))

    def test_the_first_cells_have_each_number_of_connections_and_what_a_cluster_keeps(self):
        rates = {OURS: [100.0], "StackExchange.Redis 1": [50.0], "StackExchange.Redis 2": [80.0], "hiredis": [200.0]}
        half = {row: [rate / 2 for rate in turns] for row, turns in rates.items()}
        run = report({waiting(16, place, key_size=512, connections=count): found for count in (1, 4) for place, found in (("standalone", rates), ("cluster", half))})
        said = "\n".join(first_cells(run))
        self.assertIn("| standalone: GET hit, 512 B, 16 callers, keys of 512 B | 0.1 k/s | StackExchange.Redis 2, 0.1 k/s | 1.25 (1.25–1.25) | hiredis, 0.2 k/s | 0.50 (0.50–0.50) |", said)
        self.assertIn("| GET hit, 512 B, 16 callers, keys of 512 B, 4 connections | 0.50 (0.50–0.50) | 0.50 (0.50–0.50) | 0.50 (0.50–0.50) |", said)

    def test_a_run_says_how_fast_one_caller_of_c_was_by_the_clock(self):
        self.assertEqual(by_clock([whole(90, 100), whole(90, 100)]), "tsc 1.0 to 1.0 k/s (two runs)")


if __name__ == "__main__":
    unittest.main()
