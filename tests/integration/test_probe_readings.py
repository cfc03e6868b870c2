"""What the probe reads is what the target spent; compared with the target's own clock, never with absolute times."""

from __future__ import annotations

import json

import pytest

from pindiag.model import Block, LoaderChosen, LoaderIterated, TransferSite, Window

from .probe_harness import TARGETS, launch, order, treatment

pytestmark = pytest.mark.integration

WITHIN = 0.1
FETCH_MS, OPTIMIZER_MS = 10, 5
"""What planted.py sleeps in each step."""
BYTES = 4 * 64 * 64 * 4


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    result = launch(tmp_path_factory.mktemp("planted"), TARGETS / "planted.py", "transfers", blocks=[order(steps=30)])
    block = result.one(Block)
    before = 1 + block.settle_steps  # the loader is chosen by the first step
    own = [json.loads(line) for line in result.output.splitlines()][before : before + block.steps]
    return result, {name: sum(step[name] for step in own) for name in own[0]}


def test_wait_step_and_optimizer_are_those_of_the_targets_own_clock(planted):
    result, own_ms = planted
    block = result.one(Block)
    # a sleep takes no less, and what lies within the script's clock takes no more, on a busy machine too
    assert FETCH_MS * block.steps <= block.wait_ms <= own_ms["wait"]
    assert OPTIMIZER_MS * block.steps <= block.optimizer_ms <= own_ms["optimizer"]
    assert sum(block.step_ms) == pytest.approx(own_ms["step"], rel=WITHIN)
    assert block.seconds * 1e3 == pytest.approx(own_ms["step"], rel=WITHIN)


def test_time_on_cpu_is_told_from_time_asleep(planted):
    block = planted[0].one(Block)
    assert block.main_cpu_ms / block.steps > 4 * (1 - WITHIN)
    assert block.main_cpu_ms < 0.6 * block.seconds * 1e3
    assert block.wait_cpu_ms < 0.5 * block.wait_ms


def test_bytes_and_calls_of_each_place_are_exact(planted):
    sites = {site.location.rpartition(":")[2]: site for site in planted[0].one(Block).transfers}
    lines = (TARGETS / "planted.py").read_text().splitlines()
    steps = planted[0].one(Block).steps
    whole, half = (
        sites[str(lines.index(text) + 1)]
        for text in ('            x.to("meta")', '            x[:2].to(device="meta", non_blocking=True)')
    )
    assert (whole.calls, whole.bytes, whole.non_blocking_calls) == (steps, steps * BYTES, 0)
    assert (half.calls, half.bytes, half.non_blocking_calls) == (steps, steps * BYTES // 2, steps)
    assert len(sites) == 2, "what stays on the host is no transfer"


def test_the_loader_record_describes_the_batch_and_its_transfers(planted):
    chosen = planted[0].one(LoaderChosen)
    assert (chosen.batch_bytes, chosen.batch_samples, chosen.tensors) == (BYTES, 4, 1)
    assert (chosen.device, chosen.configuration.non_blocking) == ("meta", "mixed")


@pytest.mark.parametrize("value", [True, False])
def test_non_blocking_is_switched_for_every_copy_to_the_device(tmp_path, planted, value):
    found = planted[0].one(LoaderChosen)
    result = launch(
        tmp_path, TARGETS / "planted.py", "transfers", loader=found.key, treatment=treatment(non_blocking=value)
    )
    sites: list[TransferSite] = result.one(Block).transfers
    assert all(site.non_blocking_calls == (site.calls if value else 0) for site in sites)
    assert len(sites) == 2


@pytest.mark.parametrize("workers", [0, 1])
def test_the_pin_thread_is_counted(tmp_path, workers):
    result = launch(tmp_path, TARGETS / "pinned.py", str(workers))
    block = result.one(Block)
    assert block.pin_thread is not None, result.output
    assert block.pin_thread.in_main_thread is (workers == 0)
    assert abs(block.pin_thread.batches - block.steps) <= 4
    assert result.all(LoaderIterated)[0].configuration.pin_memory
    assert result.one(LoaderChosen).accelerator == "cuda"


def test_a_window_is_profiled_after_the_last_block(tmp_path):
    result = launch(tmp_path, TARGETS / "plain.py", "num_workers=1", answers=[{"then": "profile"}])
    window = result.one(Window)
    assert (window.reason, window.steps) == (None, 3)
    assert (result.run.path / window.trace).stat().st_size > 0
    assert window.t_ns > result.one(Block).t_ns
    from pindiag.analysis.trace import monotonic_us
    from pindiag.store import read_trace

    events = read_trace(result.run.path / window.trace)
    names = [event.name for event in events]
    assert sum(name.startswith("ProfilerStep#") for name in names) == 3
    assert sum(name.startswith("Optimizer.step#SGD") for name in names) == 3
    offset_us = monotonic_us(events)
    steps = [event.ts + offset_us for event in events if event.name.startswith("ProfilerStep#")]
    assert result.one(Block).t_ns / 1e3 < min(steps) < max(steps) < window.t_ns / 1e3


def test_a_script_that_profiles_itself_gets_no_window(tmp_path):
    script = tmp_path / "profiles.py"
    plain = (TARGETS / "plain.py").read_text()
    script.write_text(plain.replace("    main()", "    with torch.autograd.profiler.profile():\n        main()"))
    window = launch(tmp_path, script, answers=[{"then": "profile"}]).one(Window)
    assert window.trace is None
    assert "profiler of its own" in window.reason


def test_what_the_script_sets_before_it_imports_torch_holds(tmp_path):
    script = tmp_path / "one_thread.py"
    script.write_text("import os\nos.environ['OMP_NUM_THREADS'] = '1'\n" + (TARGETS / "plain.py").read_text())
    environment = {"OMP_NUM_THREADS": "2"}
    assert launch(tmp_path, script, environment=environment).one(LoaderChosen).intraop_threads == 1
    assert launch(tmp_path, TARGETS / "plain.py", environment=environment).one(LoaderChosen).intraop_threads == 2


def test_the_loss_of_threads_to_the_pin_thread_is_seen_and_not_mended(tmp_path):
    result = launch(tmp_path, TARGETS / "pinned.py", "1", environment={"OMP_NUM_THREADS": "2"})
    assert result.one(LoaderChosen).intraop_threads == 1
