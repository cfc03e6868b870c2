"""Whatever a script does to its files, they are as before once the launch is settled."""

from __future__ import annotations

import os
import signal
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pindiag.launch import kept
from pindiag.model import FileTouched
from pindiag.store import read_journal

from .guarded import Guarded, state

pytestmark = pytest.mark.integration

# Each runs in a folder of its own that holds `a` and `b` (files), `empty` (a folder), `full/inside`, and
# `pointer` -> `a`. Asserts say what the script itself must see.
CASES = {
    "append": """
        with open("a", "a") as log:
            log.write("more")
        assert open("a").read() == "the user's amore"
    """,
    "append twice": """
        for _ in range(2):
            with open("a", "a") as log:
                log.write("more")
        assert open("a").read() == "the user's amoremore"
    """,
    "overwrite": """
        open("a", "w").write("new")
        open("a", "a").write("er")
        assert open("a").read() == "newer"
        assert stat.S_IMODE(os.stat("a").st_mode) == 0o640
    """,
    "overwrite through a symbolic link": """
        pathlib.Path("pointer").write_text("new")
        assert open("a").read() == "new" and os.path.islink("pointer")
    """,
    "point elsewhere": """
        os.remove("pointer")
        os.symlink("b", "pointer")
        assert open("pointer").read() == "the user's b"
    """,
    "in place": """
        with open("a", "r+b") as file:
            file.seek(4)
            file.write(b"USER")
        assert open("a").read() == "the USER's a"
    """,
    "by descriptor": """
        file = os.open("a", os.O_WRONLY | os.O_TRUNC)
        os.write(file, b"new")
        os.close(file)
    """,
    "truncate": "os.truncate('a', 3)",
    "memory map": """
        array = numpy.memmap("a", dtype="u1", mode="r+")
        array[:4] = 65
        array.flush()
    """,
    "save": "torch.save({'x': torch.ones(3)}, 'a')",
    "save to a new file": "torch.save({'x': torch.ones(3)}, 'new.pt')",
    "save through a file": """
        with open("new.pt", "wb") as file:
            torch.save(torch.ones(3), file)
    """,
    "save and rename": """
        torch.save(torch.ones(3), pathlib.Path("new.tmp"))
        os.replace("new.tmp", "new.pt")
    """,
    "save, load and save again": """
        torch.save(torch.ones(3), "a")
        assert torch.equal(torch.load("a"), torch.ones(3))
        torch.save(torch.zeros(3), "a")
        assert torch.equal(torch.load("a"), torch.zeros(3))
    """,
    "rotate checkpoints": """
        for step in range(3):
            if os.path.exists("a"):
                os.replace("a", "b")
            torch.save(step, "a")
        assert torch.load("a") == 2 and torch.load("b") == 1
    """,
    "safetensors": """
        from safetensors.torch import load_file, save_file
        save_file({"x": torch.ones(3)}, "a")
        save_file({"x": torch.ones(3)}, "new.safetensors")
        assert torch.equal(load_file("a")["x"], torch.ones(3))
    """,
    "script module": "torch.jit.script(torch.nn.Linear(2, 2)).save('a')",
    "numpy": "numpy.save('new.npy', numpy.ones(3)); numpy.ones(3).tofile('a')",
    "write new": "open('new.txt', 'w').write('new'); open('other.txt', 'x').write('new')",
    "exclusive": """
        try:
            open("a", "x")
        except FileExistsError:
            pass
        else:
            raise AssertionError
    """,
    "remove": "os.remove('a')\nassert not os.path.exists('a')",
    "remove and write again": "os.unlink('a')\nopen('a', 'w').write('new')",
    "rename": "os.rename('a', 'c')\nassert open('c').read() == \"the user's a\" and not os.path.exists('a')",
    "rename and append": """
        os.rename("a", "c")
        with open("c", "a") as file:
            file.write("more")
        assert open("c").read() == "the user's amore"
    """,
    "rename and overwrite": "os.rename('a', 'c')\nopen('c', 'w').write('new')",
    "rename over": "os.replace('a', 'b')\nassert open('b').read() == \"the user's a\"",
    "swap": "os.rename('a', 'c')\nos.rename('b', 'a')\nos.rename('c', 'b')\nopen('a', 'a').write('more')",
    "hard link and append": "os.link('a', 'c')\nopen('c', 'a').write('more')\nopen('a', 'a').write('more')",
    "descriptors closed": """
        open("b", "a").write("more")
        os.closerange(3, 256)
        with open("a", "w") as first, open("new", "w") as second:
            os.remove("b")
            second.write("new")
        assert open("a").read() == "" and open("new").read() == "new"
    """,
    "permissions": "os.chmod('a', 0o600)",
    "copy over": "shutil.copy('b', 'a')\nassert open('a').read() == \"the user's b\"",
    "move over": "shutil.move('b', 'a')\nassert open('a').read() == \"the user's b\" and not os.path.exists('b')",
    "move a folder": """
        shutil.move("full", "moved")
        open("moved/inside", "a").write("more")
        os.mkdir("moved/new")
        open("moved/new/file", "w").write("new")
        os.mkdir("full")
        open("full/inside", "w").write("new")
    """,
    "remove folders": "shutil.rmtree('full')\nos.rmdir('empty')\nassert not os.path.exists('full')",
    "new folders": "os.makedirs('deep/deeper')\ntorch.save(1, 'deep/deeper/new.pt')",
    "staged checkpoint": """
        os.mkdir("staged")
        torch.save(1, "staged/model.pt")
        open("staged/state.json", "w").write("{}")
        os.rename("staged", "checkpoint")
    """,
    "a folder for a file": "os.remove('a')\nos.mkdir('a')\nopen('a/new', 'w').write('new')",
    "sqlite": """
        connection = sqlite3.connect("new.db")
        connection.execute("create table t (x)")
        connection.commit()
    """,
    "threads": """
        def work():
            for _ in range(20):
                with open("a", "a") as file:
                    file.write(".")
        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert open("a").read().count(".") == 80
    """,
    "forks": """
        for _ in range(3):
            if os.fork() == 0:
                with open("a", "a") as file:
                    file.write(".")
                open("b", "w").write("new")
                os._exit(0)
            os.wait()
        assert open("a").read().count(".") == 3
    """,
    "elsewhere": "torch.save(1, '../../elsewhere/checkpoint.pt')\nopen('../../elsewhere/notes', 'a').write('more')",
    "a name that is not ascii": "torch.save(1, 'größe.pt')\nopen('größe', 'w').write('new')",
}

PRELUDE = """
import sys
assert "torch" not in sys.modules  # the script may set the environment up before it imports torch itself
import os, pathlib, shutil, sqlite3, stat, threading, traceback
import numpy, torch
root = os.getcwd()
def case(name, code):
    os.chdir(os.path.join(root, name))
    try:
        exec(code, dict(globals()))
    except Exception:
        print("CASE", name)
        traceback.print_exc()
"""


def lay(folder: Path) -> None:
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(f"the user's {name}")
        (folder / name).chmod(0o640)
        os.utime(folder / name, ns=(10**18, 10**18 + 7))
    (folder / "empty").mkdir(mode=0o750)
    (folder / "full").mkdir()
    (folder / "full" / "inside").write_text("the user's inside")
    (folder / "pointer").symlink_to("a")


class Ran(Guarded):
    """All cases, in one launch."""

    def __init__(self, folder: Path, run: Path) -> None:
        super().__init__(folder, run=run)
        for name in CASES:
            lay(self.work / name)
        (self.elsewhere / "notes").write_text("the user's notes")
        self.before = state(self.work, self.elsewhere)
        calls = "\n".join(f"case({name!r}, {textwrap.dedent(code)!r})" for name, code in CASES.items())
        self.done = self(PRELUDE + calls)
        self.touched = [
            record
            for path in self.run.journal.glob("files-001-*.jsonl")
            for _, record in read_journal(path)
            if isinstance(record, FileTouched)
        ]
        self.settled = kept.settle_launch(self.run, 1)
        self.settled_run = kept.settle_run(self.run, self.work, self.script.parent)
        self.after = state(self.work, self.elsewhere)


@pytest.fixture(scope="module", params=["same filesystem", "another filesystem"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("guard")
    if request.param == "same filesystem":
        yield Ran(folder, folder / "run")
        return
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == folder.stat().st_dev:
        pytest.skip("this machine has one filesystem only")
    with tempfile.TemporaryDirectory(dir=memory) as run:
        yield Ran(folder, Path(run) / "run")


def test_script_sees_what_it_did(ran: Ran) -> None:
    assert ran.done.returncode == 0, ran.done.stderr
    assert "CASE" not in ran.done.stdout, ran.done.stdout + ran.done.stderr


@pytest.mark.parametrize("name", CASES)
def test_as_before(ran: Ran, name: str) -> None:
    top = str(ran.work / name)

    def of_case(found: dict[str, tuple[str, int, int]]) -> dict[str, tuple[str, int, int]]:
        return {path: value for path, value in found.items() if path == top or path.startswith(top + "/")}

    assert of_case(ran.after) == of_case(ran.before)
    if name != "exclusive":
        assert [record for record in ran.touched if top in record.path or "elsewhere" in record.path]


def test_nothing_failed(ran: Ran) -> None:
    assert not ran.settled.failed
    assert not ran.settled_run.failed
    assert ran.after == ran.before


def test_lists_what_was_touched(ran: Ran) -> None:
    assert str(ran.work / "append" / "a") in ran.settled.restored
    assert str(ran.elsewhere / "checkpoint.pt") in ran.settled.moved
    assert str(ran.work / "safetensors" / "new.safetensors") in ran.settled.moved
    assert str(ran.work / "staged checkpoint" / "checkpoint" / "model.pt") in ran.settled.moved
    assert str(ran.work / "write new" / "new.txt") not in ran.settled.moved
    assert str(ran.work / "write new" / "new.txt") in ran.settled_run.moved


def test_new_files_are_kept(ran: Ran) -> None:
    written = ran.work / "write new" / "new.txt"
    assert (ran.run.kept / "new" / written.relative_to("/")).read_text() == "new"


def test_settling_twice_does_no_harm(ran: Ran) -> None:
    again = kept.settle_launch(ran.run, 1)
    assert not again.restored
    assert not again.failed
    assert state(ran.work, ran.elsewhere) == ran.before


KILLED = """
import os, time, torch
torch.save({"x": torch.ones(3)}, "best.pt")
log = open("log", "a")
log.write("step")
log.flush()
os.remove("stale")
reader, writer = os.pipe()
if os.fork() == 0:
    open("notes", "r+").write("X")
    os.write(writer, b".")
    time.sleep(60)
os.read(reader, 1)
open("history", "w").write("part")
torch.save(1, "new.pt")
print("ready", flush=True)
time.sleep(60)
"""


def test_killed_in_the_middle(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path)
    for name in ("best.pt", "log", "stale", "notes"):
        (guarded.work / name).write_text(f"the user's {name}")
    before = state(guarded.work, guarded.elsewhere)
    child = guarded.start(KILLED)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    journals = sorted(guarded.run.journal.glob("files-001-*.jsonl"))
    os.kill(child.pid, signal.SIGKILL)
    assert kept.settle_unsettled(guarded.run) == []  # the forked child still lives
    for path in journals:
        pid = int(path.stem.split("-")[2])
        if pid != child.pid:
            os.kill(pid, signal.SIGKILL)
    child.communicate(timeout=10)
    launch, run = kept.settle_unsettled(guarded.run)
    assert state(guarded.work, guarded.elsewhere) == before
    assert {Path(path).name for path in launch.restored} == {"best.pt", "log", "stale", "notes"}
    assert {Path(path).name for path in run.moved} == {"history"}
    assert kept.settle_unsettled(guarded.run) == []
    assert msgspec.json.encode(launch) in (guarded.run.journal / "parent.jsonl").read_bytes()


DIES_AT_EACH_STEP = """
import os, signal, torch
root = os.getcwd()

def dying(call, after):
    def die_or_call(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **kwargs)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return die_or_call

for name in sorted(os.listdir(root)):
    step, after = name.split("-")
    if os.fork() == 0:
        os.chdir(os.path.join(root, name))
        left = [int(step)]
        for call in ("fsync", "rename", "replace", "link", "remove", "sendfile"):
            setattr(os, call, dying(getattr(os, call), after == "after"))
        torch.save(1, "model.pt")
        open("log", "a").write("more")
        open("table", "w").write("new")
        os.rename("old", "older")
        open("older", "a").write("more")
        os.remove("stale")
        os.replace("table", "notes")
        print("done", flush=True)
        os._exit(0)
    os.wait()
"""


def test_killed_at_each_step_of_keeping(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path)
    steps = 25
    for step in range(1, steps + 1):
        for moment in ("before", "after"):
            folder = guarded.work / f"{step:02d}-{moment}"
            folder.mkdir()
            for name in ("model.pt", "log", "table", "old", "stale", "notes"):
                (folder / name).write_text(f"the user's {name}")
    before = state(guarded.work)
    done = guarded(DIES_AT_EACH_STEP)
    assert done.returncode == 0, done.stderr
    assert 0 < done.stdout.count("done") < steps, "the steps reach beyond the script's end, and not all do"
    assert not kept.settle_launch(guarded.run, 1).failed
    assert not kept.settle_run(guarded.run, guarded.work, guarded.work).failed
    assert state(guarded.work) == before


def test_larger_than_the_cap(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, cap_bytes=100)
    (guarded.work / "big").write_bytes(bytes(101))
    (guarded.work / "model.pt").write_bytes(bytes(101))
    before = state(guarded.work)
    done = guarded(
        """
import torch
torch.save(1, "model.pt")
try:
    open("big", "a")
except OSError as error:
    print(error)
open("big", "r+")
"""
    )
    assert done.returncode == 1
    assert "`--keep-cap 1GiB`" in done.stdout
    assert "KeepRefused" in done.stderr
    assert kept.settle_launch(guarded.run, 1).restored == [str(guarded.work / "model.pt")]
    assert state(guarded.work) == before


def test_native_changes_are_listed(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path)
    (guarded.work / "seen").write_text("the user's")
    (guarded.work / "unseen").write_text("the user's")
    before = kept.Snapshot.take([guarded.work, guarded.script.parent], guarded.run)
    guarded("import subprocess; subprocess.run('echo x >> unseen; echo x > new', shell=True); open('seen', 'a')")
    settled = kept.settle_launch(guarded.run, 1, before)
    listed = {Path(path).name for path in settled.listed}
    assert listed == {"unseen", "new", "train.py"}  # train.py: written by this test after the snapshot
    assert [Path(path).name for path in settled.restored] == ["seen"]
