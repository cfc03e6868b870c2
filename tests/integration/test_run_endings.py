"""However a run ends, what was measured is kept, no process is left, and the exit code says which end it was."""

from __future__ import annotations

import signal
import time

import pytest

from .product import Product, train

pytestmark = pytest.mark.integration

SLOW_WORKERS = {"arguments": "num_workers=2", "item": "time.sleep(8 if os.path.exists('slow') else 0.001)"}


def test_baseline_alone_is_explained(product: Product) -> None:
    train(product.folder / "train.py", item="time.sleep(0.004)")
    done = product("run", "train.py", "-o", "out", "--budget", "10s", "--rounds", "3")
    assert done.returncode == 0, done.stderr
    report = product.report()
    assert [trial.id for trial in report.trials if trial.kind == "configuration"] == [report.baseline]
    assert {"compute_only", "loader_only-nw0-pin0"} <= {trial.id for trial in report.trials}
    baseline = report.trials[0]
    assert baseline.status == "measured"
    assert baseline.stage_ms.wait is not None and baseline.stage_ms.wait > 0.9 * 8 * 4
    assert report.loader is not None and "train.py:" in report.loader.chosen
    for name in ("report.html", "summary.md", "target.log", "run.json"):
        assert (product.folder / "out" / name).stat().st_size > 0
    product.wait_until_gone(1)


def test_script_that_fails_by_itself(product: Product) -> None:
    train(product.folder / "train.py", body="if step == 30:\n    raise ValueError('planted at step 30')")
    done = product("run", "train.py", "--sweep", "--budget", "20s", "-o", "out", "--steps", "200")
    assert done.returncode == 3, done.stderr
    assert "ValueError: planted at step 30" in done.stderr
    assert "pindiag_probe" not in done.stderr
    report = product.report()
    assert report.target.status == "failed"
    assert report.verdict.primary_cause == "script_error"
    product.wait_until_gone(1)


def test_script_that_fails_under_a_treatment_only(product: Product) -> None:
    train(
        product.folder / "train.py",
        item="if get_worker_info() is not None:\n    raise RuntimeError('not made for workers')\ntime.sleep(0.001)",
    )
    asked = ("--sweep", "--budget", "15s", "--rounds", "1", "--no-verify", "--grid", "num_workers=0,1")
    done = product("run", "train.py", *asked, "-o", "out")
    assert done.returncode == 0, done.stderr
    report = product.report()
    failed = [trial for trial in report.trials if trial.status == "failed"]
    assert [trial.configuration.num_workers for trial in failed] == [1]
    assert "not made for workers" in (failed[0].reason or "")
    assert report.target.status == "ok"


def test_interrupt_while_workers_sleep(product: Product) -> None:
    train(product.folder / "train.py", **SLOW_WORKERS)
    child = product.start("run", "train.py", "--sweep", "-o", "out", "--steps", "100000")
    product.wait_for('"first_step"')
    (product.folder / "slow").touch()
    time.sleep(1)
    started = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert err.endswith("Go on with `pindiag run --resume out`.\n")
    assert time.monotonic() - started < 10
    product.wait_until_gone(1)
    assert product.report().target.status == "interrupted"


def test_worker_killed(product: Product) -> None:
    train(
        product.folder / "train.py",
        arguments="num_workers=2",
        item="if index == 200:\n    os.kill(os.getpid(), 9)\ntime.sleep(0.001)",
    )
    done = product("run", "train.py", "-o", "out", "--steps", "500")
    assert done.returncode == 3, done.stderr
    report = product.report()
    error = report.target.error or ""
    assert "train.py" in error
    # torch meets the dead worker's closed socket or the signal, whichever comes first
    assert "killed by signal" in error or "Connection" in error or "exited unexpectedly" in error
    product.wait_until_gone(1)


def test_target_killed_within_its_first_second(product: Product) -> None:
    train(product.folder / "train.py")
    child = product.start("run", "train.py", "-o", "out")
    product.wait_for('"launch_began"')
    time.sleep(0.3)
    targets = [p for p in product.processes() if any("bootstrap.py" in word for word in p.cmdline())]
    for process in targets:
        process.kill()
    _, err = child.communicate(timeout=60)
    assert targets
    assert child.returncode == 3, err
    assert "killed" in product.report().launches[0].exit
    product.wait_until_gone(1)


def test_parent_killed_then_reported(product: Product) -> None:
    train(product.folder / "train.py", **SLOW_WORKERS)
    first = product.start("run", "train.py", "-o", "out", "--steps", "5", "--rounds", "6")
    product.wait_for('"type":"block"')
    (product.folder / "slow").touch()
    time.sleep(1)
    first.kill()
    first.communicate()
    product.wait_until_gone(3)
    done = product("report", "out")
    assert done.returncode == 0, done.stderr
    report = product.report()
    assert any(block.status == "counted" for block in report.blocks)
    assert report.target.status == "interrupted"


def test_loader_processes_do_not_outlive_a_stop(product: Product) -> None:
    train(product.folder / "train.py", arguments="num_workers=2", item="time.sleep(0.002)")
    done = product("run", "train.py", "-o", "out", "--rounds", "1", "--steps", "20")
    assert done.returncode == 0, done.stderr
    product.wait_until_gone(1)
