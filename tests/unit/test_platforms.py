"""Modules can be imported on macOS and Windows, simulated: without the modules and names that these lack.

On Windows, where nothing is launched, those with which reports are made and explained.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT_ALL = """
import importlib, importlib.abc, os, pkgutil, signal, sys
import click, jinja2, libcst, matplotlib.pyplot, pandas, psutil, rich.live, rich.progress, scipy.stats, torch.profiler

platform, hidden, gone, unused = sys.argv[1], *(words.split(",") for words in sys.argv[2:])

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
for name in hidden:
    sys.modules.pop(name, None)
sys.platform = platform
for name in gone:
    for module in (os, signal):
        if hasattr(module, name):
            delattr(module, name)

import pindiag
for found in pkgutil.walk_packages(pindiag.__path__, "pindiag."):
    if not found.name.endswith("__main__") and found.name.split(".")[1] not in unused:
        importlib.import_module(found.name)
print("all")
"""
LINUX_ONLY = "sched_getaffinity,memfd_create,pidfd_open,posix_fallocate,SIGRTMIN,SIGRTMAX"
UNIX_ONLY = (
    "fork,killpg,setsid,geteuid,getegid,statvfs,sysconf,pread,register_at_fork,SIGKILL,SIGHUP,SIGCHLD,SIGUSR1,SIGUSR2"
)


@pytest.mark.parametrize(
    ("platform", "hidden", "gone", "unused"),
    [
        ("darwin", "nothing", LINUX_ONLY, ""),
        ("win32", "resource,fcntl,termios,pwd,grp,tty,readline", f"{LINUX_ONLY},{UNIX_ONLY}", "launch,probe"),
    ],
)
def test_modules_can_be_imported(platform: str, hidden: str, gone: str, unused: str) -> None:
    words = [sys.executable, "-c", IMPORT_ALL, platform, hidden, gone, unused]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr
