"""What concerns the CPUs of workers is tried where the sampler saw a reason beside the script as written."""

import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from tests.unit.loads import load


class Beside(Simulation):
    """The sampler sees the same beside every block."""

    seen = {}

    def _record(self, order, trial, *rest, **more):
        super()._record(order, trial, *rest, **more)
        self._write(load(order.block, trial=trial, **self._at(), **self.seen))


def tweaks(threads=1, **seen):
    pipeline = Pipeline(fetch_s=0.06, compute_s=0.006, accelerator=None, threads=threads)
    run = Beside(sweep_spec(rounds=3), loader(), pipeline, Noise(block=0.002), seed=3)
    run.seen = {"queued_share": 0.4, "worker_threads": 2, "worker_allowed_cpus": 8, "cpus": 8, **seen}
    treatments = Journal(run.run().records).treatments.values()
    return {one.tweak: one.changes for one in treatments if one.kind == "tweak"}


def test_native_threads_of_workers_that_queue():
    assert tweaks(worker_threads=9)["worker_threads"] == {"worker_threads": 1}
    assert "worker_threads" not in tweaks(worker_threads=3)
    assert "worker_threads" not in tweaks(worker_threads=9, queued_share=0.01)
    assert "worker_threads" in tweaks(worker_threads=9, queued_share=None), "the kernel may not tell"


def test_half_of_the_main_threads_where_training_is_on_the_cpu():
    assert tweaks(threads=8) == {"fewer_intraop_threads": {"fewer_intraop_threads": 4}}
    assert tweaks(threads=1) == {}
    assert tweaks(threads=8, queued_share=0.01) == {}


@pytest.mark.parametrize(("allowed", "tried"), [(1, True), (3, True), (4, False), (None, False)])
def test_workers_on_fewer_cpus_than_there_are_workers(allowed, tried):
    assert ("worker_affinity" in tweaks(worker_allowed_cpus=allowed)) is tried


def test_as_many_cpus_as_the_script_was_given_are_no_collapse():
    assert "worker_affinity" not in tweaks(worker_allowed_cpus=2, cpus=2)
