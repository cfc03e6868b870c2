"""A script that profiles itself gets its own trace as without us, and our window says why it is none."""

from __future__ import annotations

import pytest

from pindiag.model import Window

from .probe_harness import TARGETS, launch, order
from .test_probe_target import plainly

pytestmark = pytest.mark.integration


def counts(output):
    """Without the lines of Kineto, which bear the time and the process."""
    return [line for line in output.splitlines() if not line.startswith("USDT:")]


def test_its_own_trace_is_unchanged(tmp_path):
    script = TARGETS / "own_profiler.py"
    output = plainly(tmp_path, script)[1]
    result = launch(tmp_path, script, natural_epochs=True, blocks=[order(steps=1000)])
    assert "Optimizer.step#SGD.step 30" in output
    assert (counts(result.output), result.returncode) == (counts(output), 0)


def test_the_window_tells_why_it_is_none(tmp_path):
    result = launch(tmp_path, TARGETS / "own_profiler.py", blocks=[order(steps=5)], answers=[{"then": "profile"}])
    window = result.one(Window)
    assert (window.trace, window.reason) == (None, "the script runs a profiler of its own")
