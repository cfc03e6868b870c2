"""Two samples swept as a user would, in ten seconds each: the report holds together, whatever this machine's speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pindiag.model import BlockLoad, LoaderIterated
from pindiag.store import RunDirectory

from .product import Product, train

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


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Product]:
    """A sweep with another batch size, and one of slow imports, which waits more than it computes."""
    products = {name: Product(tmp_path_factory.mktemp(name)) for name in ("batch_size", "slow_import")}
    script = train(
        products["slow_import"].folder / "train.py", arguments="num_workers=1, multiprocessing_context='spawn'"
    )
    script.write_text(script.read_text() + "else:\n    time.sleep(1.5)\n")
    sized = ("--sweep-batch-size", "64", "--grid", "num_workers=0", "--rounds", "1", "--no-verify", "--budget", "60s")
    asked = {
        "batch_size": (str(SAMPLES / "tabular_rows.py"), *sized),
        "slow_import": ("train.py", "--sweep", "--budget", "20s", "--no-verify"),
    }
    children = {name: product.start("run", *asked[name], "-o", "out") for name, product in products.items()}
    done = {name: product.end(children[name]) for name, product in products.items()}
    assert {name: each.returncode for name, each in done.items()} == dict.fromkeys(asked, 0), done
    return products


def test_another_batch_size_runs_beside_the_sweep(side_by_side: dict[str, Product]) -> None:
    product = side_by_side["batch_size"]
    report = product.report()
    trials = {trial.id: trial for trial in report.trials if trial.kind == "configuration"}
    sized = trials["nw4-pin0-bs64"]
    assert (sized.status, sized.isolation, sized.configuration.batch_size) == ("measured", "fresh", 64), sized.reason
    own = [block for block in report.blocks if block.id in sized.blocks]
    assert all(block.samples == 64 * block.steps for block in own)
    assert sized.versus_baseline is not None
    assert sized.memory_bytes.total
    assert report.recommendation is not None
    assert report.recommendation.trial in ("nw4-pin0", "nw0-pin0")
    assert "nw4-pin0-bs64" not in report.recommendation.frontier
    assert "Other batch sizes" in (product.folder / "out" / "summary.md").read_text()


def test_workers_that_are_dear_to_start_get_longer_blocks(side_by_side: dict[str, Product]) -> None:
    """Spawned workers import the script, which takes its time there; what ran beside each block is known."""
    product = side_by_side["slow_import"]
    report, records = product.report(), RunDirectory.open(product.folder / "out").records()
    facts = {fact.name: fact for fact in report.facts if fact.trial is None}
    starts = [record for record in records if isinstance(record, LoaderIterated) and record.worker_pids]
    assert starts
    assert all(record.start_method == "spawn" and (record.first_batch_ms or 0) > 1500 for record in starts)
    assert facts["race_startup_share"].value > 0
    assert str(facts["block_length"].value).startswith("starting workers took ")
    loads = {record.block for record in records if isinstance(record, BlockLoad)}
    assert loads and loads <= {block.id for block in report.blocks}
    assert facts["disturbed_blocks"].value is not None
