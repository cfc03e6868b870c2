"""What article.py compares and concludes, over processes that never ran; and its target, which does run."""

from __future__ import annotations

import article
import pytest

from pindiag import rules


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What processes were asked; a pinned one takes half as long by any figure that its own way cannot hide."""
    calls: list[list[str]] = []

    def measure(what, words):
        calls.append([what, *words])
        slow = 1.0 if "--pin" in words else 2.0
        return {"shown_ms": 1.0, "whole_ms": 5 * slow, "synchronised_ms": 4.0, "window_ms": 2 * slow}

    monkeypatch.setattr(article, "measure", measure)
    return calls


SIZE = article.Size(rounds=4, samples=10)


def test_the_articles_clock_misses_what_a_clock_around_all_sees(asked):
    found = article.scenario_1(SIZE)
    assert found["by_the_articles_clock"]["ratio"] == pytest.approx(1)
    assert found["by_a_clock_around_all"]["ratio"] == pytest.approx(2)
    assert sorted(found["share_of_the_time_that_the_articles_clock_sees"]) == pytest.approx([0.1] * 4 + [0.2] * 4)


def test_each_round_runs_all_cases_and_every_other_the_window_first(asked):
    found = article.three_way(SIZE)
    assert found["pin_memory and non_blocking"]["over_a_window"]["ratio"] == pytest.approx(2)
    assert found["pin_memory and non_blocking"]["synchronised"]["ratio"] == pytest.approx(1)
    turns = [asked[start : start + 3] for start in range(0, len(asked), 3)]
    assert [sum("--pin" in words for words in turn) for turn in turns] == [2] * 4
    assert [{"--window-first" in words for words in turn} for turn in turns] == [{False}, {True}, {False}, {True}]


def test_statements_say_what_was_found_of_the_causes_that_cover_them():
    status = {each.name: "ruled_out" for each in rules.catalogue()} | {"cpu_bound": "confirmed"}
    rows = article.judged(status)
    assert rows[0]["found"] == {"cpu_bound": "confirmed", "io_bound": "ruled_out"}
    assert {row["found"] for row in article.judged(None)} == {None}


@pytest.mark.parametrize(
    ("what", "figures"),
    [
        ("clock", {"shown_ms", "whole_ms"}),
        ("ways", {"synchronised_ms", "window_ms"}),
        ("threads", {"exp_ms", "threads"}),
    ],
)
def test_the_target_measures(what, figures):
    small = ["--samples", "8", "--floats", "100", "--batch-size", "4", "--workers", "1"]
    found = article.measure(what, small)
    assert set(found) == figures
    assert all(figure > 0 for figure in found.values())


def test_images_fit_as_float32_but_not_as_float64_first():
    words = ["--samples", "400", "--floats", "100000", "--batch-size", "100", "--workers", "1", "--settle-s", "0"]
    found = article.measure("memory", words)
    assert found["doubles_fit"] == 0
    assert found["main_rss_bytes"] > 400 * 100_000 * 4
    assert article.measure("memory", [*words, "--room", "3"])["doubles_fit"] == 1
