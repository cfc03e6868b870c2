import subprocess

from pindiag.fixes import Places
from pindiag.model import Finding, Fix, Safety

TRAIN = """\
import torch
from torch.utils.data import DataLoader

loader = DataLoader(
    data,
    batch_size=64,
    num_workers=4,  # one a core
)
for images, labels in loader:
    images = images.to(device)
    labels = labels.to(device)
"""
SOURCES = {"/home/me/project/train.py": TRAIN}


def make_fix(**changes):
    return Fix(
        summary="Set it.",
        changes=changes,
        location=None,
        patch=None,
        snippet=None,
        effect=None,
        trade_off=None,
        safety=Safety(status="not_checked", reason="-"),
    )


def done(fix, transfers=("/home/me/project/train.py:10", "/home/me/project/train.py:11"), **options):
    options = {"loader": "/home/me/project/train.py:4", "sources": SOURCES, "root": "/home/me/project", **options}
    return Places(transfers=transfers, **options).fix_for(fix)


def test_one_patch_for_loader_and_copies_that_the_patch_tool_takes(tmp_path):
    fix = done(make_fix(num_workers=0, pin_memory=True, non_blocking=True))
    assert fix.location == "/home/me/project/train.py:4"
    assert fix.snippet is None
    (tmp_path / "train.py").write_text(TRAIN)
    subprocess.run(["git", "apply", "-"], input=fix.patch, text=True, cwd=tmp_path, check=True)
    after = (tmp_path / "train.py").read_text()
    assert "    num_workers=0,  # one a core\n    pin_memory=True,\n)" in after
    assert after.count(".to(device, non_blocking=True)") == 2


def test_copies_in_another_file_are_in_the_same_patch():
    sources = {**SOURCES, "/home/me/project/lib/step.py": "def step(x):\n    return x.cuda()\n"}
    fix = done(make_fix(pin_memory=True, non_blocking=True), ["/home/me/project/lib/step.py:2"], sources=sources)
    assert "+++ b/lib/step.py" in fix.patch
    assert "+++ b/train.py" in fix.patch


def test_what_cannot_be_edited_becomes_a_snippet_with_its_reason():
    sources = {"/home/me/project/train.py": TRAIN.replace("num_workers=4", "num_workers=args.workers")}
    fix = done(make_fix(num_workers=0, pin_memory=True), sources=sources)
    assert "+    pin_memory=True" in fix.patch
    assert fix.snippet == "num_workers=0  # not in the patch: it comes from `args.workers`; change it there"
    assert fix.by_hand == ["num_workers"]


def test_installed_packages_are_left_alone():
    fix = done(make_fix(non_blocking=True), ["/usr/lib/python3/site-packages/lightning/move.py:3"])
    assert fix.patch is None
    assert "belongs to an installed package" in fix.snippet


def test_nothing_known_nothing_patched():
    fix = done(make_fix(num_workers=0, non_blocking=True), [], loader=None, sources={})
    assert fix.patch is None
    assert "the place of the DataLoader is not known" in fix.snippet
    assert "no copy to the device was seen" in fix.snippet


def test_a_file_that_was_not_kept_is_named():
    fix = done(make_fix(num_workers=0), sources={})
    assert "the text of train.py was not kept" in fix.snippet


def test_without_an_accelerator_pinning_is_guarded_and_not_proposed_again():
    pinned = TRAIN.replace("batch_size=64", "pin_memory=True")
    finding = Finding(
        rule="PD113",
        cause="pin_without_accelerator",
        status="confirmed",
        severity="low",
        title="-",
        explanation="-",
        fixes=[make_fix(pin_memory=False)],
    )
    where = {"loader": "/home/me/project/train.py:4", "transfers": [], "root": "/home/me/project"}
    fix = Places(sources={"/home/me/project/train.py": pinned}, **where).complete(finding).fixes[0]
    assert "+    pin_memory=torch.cuda.is_available()," in fix.patch
    mended = pinned.replace("pin_memory=True", "pin_memory=torch.cuda.is_available()")
    assert Places(sources={"/home/me/project/train.py": mended}, **where).complete(finding).fixes[0].patch is None


def test_what_no_edit_carries_out_is_a_line_of_code_with_its_reason():
    fix = done(make_fix(worker_threads=1, num_workers=2))
    assert "+    num_workers=2,  # one a core" in fix.patch
    assert fix.snippet.startswith(
        "worker_init_fn=lambda worker: threadpoolctl.threadpool_limits(1)  # of the DataLoader"
    )
    assert "pindiag does not know" in fix.snippet
    assert fix.by_hand == ["worker_threads"]
    assert "os.sched_setaffinity(0, range(os.cpu_count()))" in done(make_fix(worker_affinity=True)).snippet


def test_fewer_threads_and_the_loader_are_one_patch():
    fix = done(make_fix(fewer_intraop_threads=2, num_workers=2))
    assert "+torch.set_num_threads(2)" in fix.patch and "+    num_workers=2," in fix.patch
    assert fix.location == "/home/me/project/train.py:4"
    alone = done(make_fix(fewer_intraop_threads=2), [])
    assert "+torch.set_num_threads(2)" in alone.patch
    assert alone.location is None, "it stands behind the imports, not at the loader"
    sources = {path: text.replace("import torch\n", "", 1) for path, text in SOURCES.items()}
    left = done(make_fix(fewer_intraop_threads=2), sources=sources, loader="/home/me/project/train.py:3")
    assert left.patch is None
    assert left.snippet.startswith("torch.set_num_threads(2)  # before training begins  # not in the patch: the file")


def test_what_goes_with_workers_that_are_left_to_the_user_is_left_too():
    text = TRAIN.replace("num_workers=4,", "num_workers=args.workers, persistent_workers=True,")
    fix = done(make_fix(num_workers=0), sources={"/home/me/project/train.py": text})
    assert "\npersistent_workers=False  # not in the patch: without workers" in fix.snippet
    fix = done(make_fix(num_workers=4, prefetch_factor=4), sources={"/home/me/project/train.py": text})
    assert (fix.patch, fix.by_hand) == (None, ["num_workers", "prefetch_factor"])
