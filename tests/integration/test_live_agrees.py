"""Live and fresh agree on targets which make that hard, or the report says that they do not and fresh decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from pindiag.journal import Journal, Launch
from pindiag.model import Block, DatasetChanged
from pindiag.store import RunDirectory

from .product import Product

pytestmark = pytest.mark.integration

TARGET = Path(__file__).parents[1] / "targets" / "remembering.py"
GRIDS = {"caching": "0,1,4", "connected": "0,1,4", "short_epochs": "1,4"}
ASKED = ("--budget", "45s", "--rounds", "3")


class Swept:
    def __init__(self, run: RunDirectory) -> None:
        self.report = run.read_report()
        self.journal = Journal(run.records())

    @property
    def live(self) -> list[Launch]:
        return [launch for launch in self.journal.launches if launch.isolation == "live"]


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory) -> dict[str, Swept]:
    """All of them, side by side: they wait and hardly compute."""
    products = {name: Product(tmp_path_factory.mktemp(name)) for name in GRIDS}
    children = {
        name: product.start(
            "run", str(TARGET), "--sweep", "-o", "out", "--grid", f"num_workers={GRIDS[name]}", *ASKED, "--", name
        )
        for name, product in products.items()
    }
    said = {name: product.end(children[name]).stderr for name, product in products.items()}
    assert {name: child.returncode for name, child in children.items()} == dict.fromkeys(GRIDS, 0), said
    return {name: Swept(RunDirectory.open(product.folder / "out")) for name, product in products.items()}


@pytest.fixture(params=GRIDS)
def swept(request, sweeps) -> Swept:
    return sweeps[request.param]


def test_the_fastest_is_found(swept):
    assert swept.report.baseline == "nw1-pin0"
    assert swept.report.recommendation.trial == "nw4-pin0"


def test_verification_is_fresh_and_the_race_live(swept):
    verification = swept.report.verification
    isolation = {launch.id: launch.isolation for launch in swept.report.launches}
    assert {isolation[launch] for launch in verification.launches} == {"fresh"}
    assert verification.live_ratio is not None
    assert any(block.trial == "nw4-pin0" for launch in swept.live for block in launch.all(Block))


def test_agreement_is_what_the_intervals_say(swept):
    verification = swept.report.verification
    live, fresh = verification.live_ci95, verification.steady_ci95 or verification.ci95
    assert (verification.agrees_with_live is None) == (live is None or fresh is None)
    if live is not None and fresh is not None and not (live[0] <= fresh[1] and fresh[0] <= live[1]):
        assert verification.agrees_with_live is False


def test_fresh_launches_decide(swept):
    verification, said = swept.report.verification, swept.report.recommendation
    assert (said.firmness == "verified") == (verification.pairs >= 4)
    if said.firmness == "verified":
        assert (said.versus_baseline.ratio, said.versus_baseline.ci95) == (verification.ratio, verification.ci95)


@pytest.mark.parametrize("swept", ["caching", "connected"], indirect=True)
def test_a_launch_ends_when_its_dataset_has_changed(swept):
    changed = [launch for launch in swept.live if launch.first(DatasetChanged) is not None]
    assert [launch.first(DatasetChanged).trial for launch in changed] == ["nw0-pin0"]
    assert [launch.all(Block)[-1].trial for launch in changed] == ["nw0-pin0"]


@pytest.mark.parametrize("swept", ["short_epochs"], indirect=True)
def test_blocks_span_short_epochs(swept):
    assert not any(launch.first(DatasetChanged) for launch in swept.live)
    assert max(block.steps for launch in swept.live for block in launch.all(Block)) > 20
