"""Faults with real processes: whatever dies, fills up or hangs, the report says so and nothing is left behind."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from pindiag.model import LoaderIterated, Report, Sample, TreatmentRefused, Trial
from pindiag.store import RunDirectory

from . import small_disks, small_memory
from .product import Product, train

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="signals, limits and shared memory of Linux"),
]

SHORT = ("--sweep", "--no-verify", "--steps", "5", "-o", "out")
"""What every run here is asked; grid, budget and rounds are its own."""

DIES = """
workers = getattr(get_worker_info(), "num_workers", 0)
if index % 32 == 31:
    if workers == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if workers == 2:
        time.sleep(1e6)
    if workers == 3:
        pages, _ = open("/proc/self/statm").read().split(" ", 1)
        limit = int(pages) * resource.getpagesize() + (64 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        bytearray(1 << 30)
time.sleep(0.0005)
"""


def imports(script: Path, *lines: str) -> None:
    script.write_text("\n".join([*lines, script.read_text()]))


def trials(report: Report) -> Mapping[str, Trial]:
    return {trial.id: trial for trial in report.trials}


def refused(product: Product) -> Mapping[str, str]:
    """Why treatments were not started, by their id."""
    records = RunDirectory.open(product.folder / "out").records()
    return {record.trial: record.reason for record in records if isinstance(record, TreatmentRefused)}


def page(product: Product) -> str:
    """The words of report.html on one line."""
    text = (product.folder / "out" / "report.html").read_text()
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))


def check_nothing_left(product: Product, *, counted: bool = True) -> None:
    """No process, and none of the files that torch names after a process of the target; what was measured counts."""
    product.wait_until_gone(3)
    records = RunDirectory.open(product.folder / "out").records()
    pids = {process.pid for record in records if isinstance(record, Sample) for process in record.processes}
    pids |= {pid for record in records if isinstance(record, LoaderIterated) for pid in record.worker_pids}
    assert pids
    names = [path.name for path in Path("/dev/shm").glob("torch_*")]
    assert not [name for name in names if int(name.split("_")[1]) in pids]
    assert any(block.status == "counted" for block in product.report().blocks) == counted


@pytest.fixture(scope="module")
def dying(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """A run of which each configuration beside the baseline dies in a way of its own."""
    product = Product(tmp_path_factory.mktemp("dying"))
    product.module = "tests.integration.impatient"
    product.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    imports(train(product.folder / "train.py", item=DIES), "import resource, signal")
    words = ("--grid", "num_workers=0,1,2,3", "--budget", "60s", "--rounds", "1", "--wait", "20s")
    done = product("run", "train.py", *SHORT, *words)
    assert done.returncode == 0, done.stderr
    return product


UNDER = {
    "nw1-pin0": "a worker was killed by SIGKILL, which pindiag did not send",
    "nw2-pin0": "time-out: it made no progress for",
    "nw3-pin0": "out of memory: MemoryError",
}


@pytest.mark.parametrize("trial", UNDER)
def test_what_dies_under_a_treatment_fails_that_treatment(dying: Product, trial: str) -> None:
    report = dying.report()
    found = trials(report)[trial]
    assert found.status == "failed"
    assert UNDER[trial] in (found.reason or "")
    assert (found.reason or "") in page(dying)
    assert report.target.status == "ok"
    assert trials(report)["nw0-pin0"].status == "measured"
    crash = next(finding for finding in report.findings if finding.cause == "worker_crash")
    assert crash.status == "ruled_out"


def test_stacks_of_a_launch_that_hangs_are_in_the_report(dying: Product) -> None:
    hung = [launch for launch in dying.report().launches if launch.stacks]
    assert hung
    for launch in hung:
        assert (launch.stacks or "").count("(worker)") == 2
        assert f"its stacks are in stacks/launch-{launch.id:03d}.txt" in (launch.reason or "")
    assert page(dying).count("__getitem__") >= 2


def test_nothing_is_left_of_what_died(dying: Product) -> None:
    check_nothing_left(dying)


def test_worker_that_dies_under_the_baseline(product: Product) -> None:
    dies = "if index == 300:\n    os.kill(os.getpid(), signal.SIGSEGV)\ntime.sleep(0.001)"
    imports(train(product.folder / "train.py", arguments="num_workers=2", item=dies), "import signal")
    done = product("run", "train.py", *SHORT, "--steps", "60", "--grid", "num_workers=2")
    assert done.returncode == 3, done.stderr
    assert "a worker was killed by SIGSEGV, which pindiag did not send" in done.stderr
    report = product.report()
    assert report.target.status == "failed"
    assert report.verdict.primary_cause == "worker_crash"
    assert re.match(r"A loader worker died at step \d+: SIGSEGV\.", report.verdict.headline)
    found = {finding.cause: finding for finding in report.findings}
    assert (found["worker_crash"].status, found["worker_crash"].severity) == ("confirmed", "high")
    assert {"worker_death", "start_method"} <= {each.name for each in found["worker_crash"].evidence}
    assert found["script_error"].status == "not_applicable"
    for words in ("a worker was killed by SIGSEGV, which pindiag did not send", "so native code in it broke"):
        assert words in page(product)
    check_nothing_left(product, counted=False)


def test_full_shm(product: Product) -> None:
    """One worker fills /dev/shm, or where none can be made small dies of the signal that comes of it."""
    left = product.folder / "left"
    mounted = small_disks.mounted(Path("/dev/shm"), "8m", left=left)
    grows = "torch.zeros(1 << 22)" if mounted else "os.kill(os.getpid(), signal.SIGBUS)"
    item = f"""
    one = getattr(get_worker_info(), "num_workers", 0) == 1
    if one:
        return {grows}, 0
    """
    script = train(product.folder / "train.py", item=item)
    script.write_text(script.read_text().replace("DataLoader(Data(), batch_size=8", "DataLoader(Data(), batch_size=1"))
    imports(script, "import signal")
    script.write_text(script.read_text().replace("model(x)", "model(x[:, :64])"))
    product.before = mounted or []
    done = product("run", "train.py", *SHORT, "--grid", "num_workers=0,1,2", "--budget", "8s", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    found = trials(product.report())
    assert found["nw1-pin0"].status == "failed"
    assert re.search(r"/dev/shm is full \(it holds \d+ MB", found["nw1-pin0"].reason or "")
    assert "it needs at least as much as nw1-pin0, which ended for want of it" in refused(product)["nw2-pin0"]
    assert not mounted or left.read_text() == ""
    check_nothing_left(product)


EATS = """
if getattr(get_worker_info(), "num_workers", 0) == 1:
    self.hoard = [*getattr(self, "hoard", []), b"x" * (32 << 20)]
time.sleep(0.0005)
"""


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A memory cgroup of 900 MiB. It can only be removed when no process is left in it."""
    group = small_memory.group(900 << 20)
    if group is None:
        pytest.skip("this user may not make a memory cgroup with a limit here")
    yield group
    group.rmdir()


def test_worker_killed_at_the_limit_of_a_memory_cgroup(product: Product, memory_group: Path) -> None:
    train(product.folder / "train.py", item=EATS)
    product.before = small_memory.inside(memory_group)
    done = product("run", "train.py", *SHORT, "--grid", "num_workers=0,1,2", "--budget", "15s", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    report = product.report()
    found = trials(report)
    assert (found["nw0-pin0"].status, found["nw1-pin0"].status) == ("measured", "failed")
    killed = (
        "out of memory: a worker was killed; the kernel killed a process: its control group reached its memory limit"
    )
    assert f"{killed} of 944 MB" in (found["nw1-pin0"].reason or "")
    assert f"{killed} of 944 MB" in page(product)
    assert "it needs at least as much as nw1-pin0, which ended for want of it" in refused(product)["nw2-pin0"]
    assert sum(launch.status == "failed" for launch in report.launches) == 1
    assert report.target.status == "ok"
    check_nothing_left(product)


KEEPS_A_LAMBDA = """
if index not in self.seen:
    self.seen = {**self.seen, index: index}
time.sleep(0.0005)
"""


def test_dataset_that_cannot_be_pickled_and_changes_in_the_main_process(product: Product) -> None:
    setup = """
    Data.seen = {}
    torch.multiprocessing.set_start_method("spawn")
    """
    script = train(product.folder / "train.py", item=KEEPS_A_LAMBDA, setup=setup)
    script.write_text(script.read_text().replace("DataLoader(Data()", "DataLoader(changed(Data())"))
    changed = "def changed(data):\n    data.change = lambda row: row\n    return data\n\n"
    script.write_text(script.read_text().replace("def main():", f"{changed}def main():"))
    done = product("run", "train.py", *SHORT, "--grid", "num_workers=0,1", "--budget", "6s", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    report = product.report()
    found = trials(report)
    assert found["nw1-pin0"].status == "failed"
    assert "it cannot be pickled for a spawned worker" in (found["nw1-pin0"].reason or "")
    method = next(finding for finding in report.findings if finding.cause == "start_method")
    assert (method.status, method.severity) == ("confirmed", "medium")
    assert "could not be pickled" in method.explanation
    assert "the dataset changed while it served in the main process (seen: " in page(product)
    assert found["nw0-pin0"].status == "measured"
    assert any(launch.isolation == "fresh" and launch.status == "ok" for launch in report.launches)
    check_nothing_left(product)


def test_script_that_ends_by_itself(product: Product) -> None:
    train(product.folder / "train.py", item="time.sleep(0.002)", body="if step == 100:\n    return")
    done = product("run", "train.py", *SHORT, "--grid", "num_workers=0", "--budget", "6s", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    report = product.report()
    assert report.target.status == "ok"
    assert "the script ended by itself after 100 steps, before all was measured" in page(product)
    assert len(report.launches) > 1
    check_nothing_left(product)


def test_schedule_past_its_end(product: Product) -> None:
    script = train(product.folder / "train.py", epochs=1, body="scheduler.step()")
    scheduler = "torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=len(loader))"
    script.write_text(script.read_text().replace("    step = 0\n", f"    scheduler = {scheduler}\n    step = 0\n"))
    done = product("run", "train.py", *SHORT, "--grid", "num_workers=0,1", "--budget", "5s", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    report = product.report()
    assert report.target.status == "ok"
    assert "bears no more steps than its own epochs have (ValueError: Tried to step 65 times" in page(product)
    assert report.launches[-1].status == "ok"
    check_nothing_left(product)


def test_files_that_may_not_grow(product: Product) -> None:
    """The report does not fit; what was measured is there when it does."""
    train(product.folder / "train.py")
    child = product.start("run", "train.py", *SHORT, "--grid", "num_workers=0", "--budget", "2s", "--rounds", "1")
    product.wait_for('"type":"block"')
    psutil.Process(child.pid).rlimit(psutil.RLIMIT_FSIZE, (64 << 10, 64 << 10))
    done = product.end(child)
    assert done.returncode == 4, done.stderr
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("pindiag: A file in ") and "limit on the size of files (`ulimit -f`); what was" in said
    assert not list((product.folder / "out").glob(".*.html.*"))
    assert product("report", "out").returncode == 0
    assert product.report().target.status in ("interrupted", "ok")  # ok: only the report itself found no room
    check_nothing_left(product)


def test_full_disk_under_the_run_directory(product: Product) -> None:
    disk = product.folder / "out"
    disk.mkdir()
    again = 'mount -o remount,size=64m "$folder"; cp -r "$folder/run" "$folder/../kept"'
    before = small_disks.mounted(disk, "2m", left=product.folder / "left", after=again)
    if before is None:
        pytest.skip("this user may not mount a small disk")
    product.before = before
    fills = """
    if step == 100:
        with contextlib.suppress(OSError):
            open("out/ballast", "wb", buffering=0).write(bytes(8 << 20))
    """
    imports(train(product.folder / "train.py", item="time.sleep(0.002)", body=fills), "import contextlib")
    words = [word if word != "out" else "out/run" for word in SHORT]
    done = product("run", "train.py", *words, "--grid", "num_workers=0,1", "--budget", "20s")
    assert done.returncode == 4, done.stderr
    said = done.stderr.strip().splitlines()[-1]
    assert re.match(r"pindiag: The disk of \S*out/run is full; what was measured before is kept\. Make room", said)
    product.wait_until_gone(3)
    product.before = []
    assert product("report", "kept").returncode == 0
    report = product.report("kept")
    assert any(block.status == "counted" for block in report.blocks)
    assert report.target.status in ("interrupted", "ok")  # ok: only the report itself found no room
