"""A script with handlers, a folder, a fork and a start method of its own runs as under plain Python."""

from __future__ import annotations

import pytest

from .probe_harness import TARGETS, order
from .test_probe_target import launch, plainly, without_tracker

pytestmark = pytest.mark.integration


def test_output_order_and_status_are_those_of_plain_python(tmp_path):
    script = TARGETS / "own_handlers.py"
    for name in ("plain", "probed"):
        (tmp_path / name).mkdir()
    returncode, output = plainly(tmp_path / "plain", script)
    result = launch(tmp_path / "probed", script, natural_epochs=True, blocks=[order(steps=1000)])
    assert "hooked ValueError the end" in output
    assert output.index("last registered") < output.index("first registered")
    assert (without_tracker(result.output), result.returncode) == (without_tracker(output), returncode)
