"""What the report says of a launch that did not end as planned."""

from __future__ import annotations

import pytest

from pindiag.analysis.endings import in_words
from pindiag.journal import Launch
from pindiag.model import AnyRecord, DatasetChanged, LaunchEnded, TargetEnded, TargetFailed


def ended(status: str = "ok", reason: str | None = None) -> LaunchEnded:
    return LaunchEnded(launch=1, t_ns=9, status=status, exit="x", returncode=0, seconds=1.0, reason=reason)


def over(how: str) -> TargetEnded:
    return TargetEnded(launch=1, t_ns=8, how=how, status=0, steps=150, epochs=2.3)


def failed(message: str, *, past_natural_end: bool) -> TargetFailed:
    return TargetFailed(
        launch=1,
        t_ns=7,
        exception="ValueError",
        message=message,
        traceback="",
        step=193,
        past_natural_end=past_natural_end,
    )


CHANGED = DatasetChanged(launch=1, t_ns=5, trial="nw0-pin0", block=3, what="seen: 8 entries before, 352 after")
PAST = failed("Tried to step 193 times\nand more", past_natural_end=True)
REASON = "ValueError: Tried to step 193 times (under nw1-pin0)"


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], None),
        ([over("stopped"), ended()], None),
        ([over("finished"), ended()], "the script ended by itself after 150 steps, before all was measured"),
        ([over("exit"), ended()], "the script ended by itself after 150 steps"),
        ([over("exit"), ended("failed", "it ended with exit status 3")], "it ended with exit status 3"),
        ([over("stopped"), ended("ok", "it did not end within 10 s")], "it did not end within 10 s"),
        (
            [PAST, ended("failed", REASON)],
            "no more steps than its own epochs have (ValueError: Tried to step 193 times):",
        ),
        ([failed("", past_natural_end=True), ended("failed", REASON)], "its own epochs have (ValueError):"),
        ([failed("no", past_natural_end=False), ended("failed", "ValueError: no")], "ValueError: no"),
        (
            [CHANGED, over("stopped"), ended()],
            "(seen: 8 entries before, 352 after): blocks after number 3 do not count",
        ),
        ([CHANGED, ended("failed", "ValueError: no")], "launches of its own; ValueError: no"),
    ],
)
def test_in_words(records: list[AnyRecord], said: str | None) -> None:
    words = in_words(Launch(1, records))
    if said is None:
        assert words is None
    else:
        assert words is not None and said in words
