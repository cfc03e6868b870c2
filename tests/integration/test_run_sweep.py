"""Two samples swept as a user would, in ten seconds each: the report holds together, whatever this machine's speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .product import Product

pytestmark = pytest.mark.integration

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("sample", ["tabular_rows", "pinned_without_gpu"])
def test_sample_is_swept(sample: str, product: Product) -> None:
    done = product("run", str(SAMPLES / f"{sample}.py"), "--sweep", "--budget", "10s", "-o", "out")
    assert done.returncode == 0, done.stderr
    report = product.report()
    configurations = [trial for trial in report.trials if trial.kind == "configuration"]
    assert len(configurations) >= 6
    assert sum(trial.status == "measured" for trial in configurations) >= 2
    assert all(trial.reason for trial in configurations if trial.status in ("skipped", "failed"))
    measured = {block for trial in configurations for block in trial.blocks}
    assert measured <= {block.id for block in report.blocks}
    assert report.verdict.headline
    if sample == "pinned_without_gpu":
        found = {finding.cause: finding.status for finding in report.findings}
        assert found["pin_without_accelerator"] == "confirmed"
    product.wait_until_gone(1)
