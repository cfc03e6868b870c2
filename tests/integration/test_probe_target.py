"""The target behaves under the probe as under plain Python: what it sees, how it fails, how it ends.

All in fresh interpreters.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import venv

import pytest

from pindiag.model import Block, LoaderChosen, LoaderIterated, TargetEnded, TargetFailed, Unmeasured

from . import probe_harness
from .probe_harness import TARGETS, order

pytestmark = pytest.mark.integration

ENDINGS = TARGETS / "endings.py"
LONG = [order(steps=1000)]

launch = functools.partial(probe_harness.launch, python=sys.executable)


def without_tracker(output):
    """Without what Python's resource tracker says, or not, of spawned workers that end while it ends."""
    lines = output.splitlines()
    return [line for line in lines if "resource_tracker" not in line and not line.startswith("  warnings.warn(")]


def plainly(folder, *words):
    child = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    return child.returncode, child.stdout


@pytest.mark.parametrize(
    ("ending", "how", "status"),
    [
        ("plain_error", "failed", 1),
        ("chained", "failed", 1),
        ("broken_row", "failed", 1),
        ("broken_row_in_worker", "failed", 1),
        ("inside_optimizer", "failed", 1),
        ("wrong_argument", "failed", 1),
        ("wrong_copy", "failed", 1),
        ("status_7", "exit", 7),
        ("status_none", "exit", 0),
        ("status_text", "exit", 1),
        ("finished", "finished", 0),
        ("interrupted", "failed", 130),
        ("own_excepthook", "failed", 1),
        ("thread_fails", "finished", 0),
        ("about", "finished", 0),
    ],
)
def test_output_and_status_are_those_of_plain_python(tmp_path, ending, how, status):
    returncode, output = plainly(tmp_path, ENDINGS, ending)
    result = launch(tmp_path, ENDINGS, ending, natural_epochs=True, blocks=LONG)
    assert (result.output, result.returncode) == (output, returncode)
    ended = result.one(TargetEnded)
    assert (ended.how, ended.status) == (how, status)


def test_a_syntax_error_looks_as_in_plain_python(tmp_path):
    script = TARGETS / "broken_syntax.py"
    assert launch(tmp_path, script).output == plainly(tmp_path, script)[1]


@pytest.mark.parametrize("arguments", [[], ["fail"]])
def test_a_module_runs_as_by_python_m(tmp_path, arguments):
    returncode, output = plainly(TARGETS, "-m", "package", *arguments)
    result = launch(tmp_path, "package", *arguments, module=True, cwd=TARGETS, natural_epochs=True, blocks=LONG)
    assert (without_tracker(result.output), result.returncode) == (without_tracker(output), returncode)
    assert result.one(LoaderChosen).start_method == "spawn"


def test_the_failure_is_recorded_first_with_its_traceback_and_step(tmp_path):
    result = launch(tmp_path, ENDINGS, "broken_row", natural_epochs=True, blocks=LONG)
    failed = result.one(TargetFailed)
    assert (failed.exception, failed.message, failed.step) == ("LookupError", "row 30 is missing", 7)
    assert not failed.past_natural_end
    assert failed.traceback == result.output
    assert result.one(Block).status == "failed"
    kinds = [record["type"] for record in result.piped]
    assert kinds[kinds.index("target_failed") :] == ["target_failed", "block_phase", "block", "target_ended"]


def test_a_killed_child_leaves_every_record_up_to_then(tmp_path):
    result = launch(tmp_path, TARGETS / "plain.py", blocks=LONG, kill_after="first_step")
    assert result.returncode == -9
    assert result.all(LoaderChosen)
    assert not result.all(TargetEnded)


def test_an_interpreter_without_torch_is_refused(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    result = launch(tmp_path, ENDINGS, "finished", python=str(tmp_path / "bare" / "bin" / "python"))
    assert_refused(result, "torch is not installed")


def test_a_torch_that_is_too_old_is_refused(tmp_path):
    folder = tmp_path / "path" / "torch"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "version.py").write_text("__version__ = '2.4.1+cu121'\ncuda = None\n")
    result = launch(tmp_path, ENDINGS, "finished", environment={"PYTHONPATH": str(folder.parent)})
    assert_refused(result, "2.6 or newer")


def assert_refused(result, reason):
    assert result.returncode == 2, result.output
    assert result.one(Unmeasured).key == "torch"
    assert reason in result.piped[0]["reason"]
    assert result.output == ""


def test_a_script_without_torch_says_so(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text("import sys\nprint('torch' in sys.modules)\n")
    result = launch(tmp_path, script)
    assert result.output == "False\n"
    assert result.one(Unmeasured).key == "loader"
    assert result.one(TargetEnded).how == "finished"


OWN_BATCHES = """
import sys, torch
from torch.utils.data import DataLoader

class Batch:
    def __init__(self, rows):
        self.rows = torch.stack(rows)

if __name__ == "__main__":
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    rows = list(torch.ones(200, 2))
    for batch in DataLoader(rows, 2, num_workers=1, collate_fn=Batch, multiprocessing_context=sys.argv[1]):
        assert batch.rows.shape == (2, 2)
        optimizer.step()
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_spawned_workers_send_objects_of_the_scripts_own_classes(tmp_path, method):
    script = tmp_path / "train.py"
    script.write_text(OWN_BATCHES)
    result = launch(tmp_path, script, method, blocks=[order(steps=5)])
    assert result.one(Block).status == "counted", result.output
    born = result.all(LoaderIterated)[0]
    assert born.pickle_ms is not None and born.pickle_ms > 0
    assert born.pickle_bytes is not None and born.pickle_bytes > 1600  # the dataset's own 200 rows of two floats
