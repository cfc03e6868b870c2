"""What this machine can do and what limits it, without a script."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pindiag import __version__
from pindiag.api import precheck
from pindiag.api.conduct import Observer, Silence, Step
from pindiag.doctor_model import Copies, Doctor, HandOff, Torch
from pindiag.model import Base, Machine, NotMeasured, Scalar

if TYPE_CHECKING:
    from pindiag.launch.doctor import Reading
    from pindiag.launch.nvml import Nvml

Kind = TypeVar("Kind", bound=Base)
TITLES = {"torch": "torch and its device", "copies": "copies to the GPU and pinning"}


def examine(*, python: str | None = None, progress: Observer | None = None) -> Doctor:
    """Measure what this machine can do; the argument is that of `pindiag doctor`. It takes a minute at most.

    Args:
        python: the interpreter that trains; pindiag's own if None.
        progress: is told what is measured next.

    Raises:
        PlatformRefused: on Windows.
        UsageError: there is no interpreter of this name.
        KeyboardInterrupt: Ctrl-C; no process is left behind.
    """
    precheck.platform(sys.platform)

    from pindiag.launch import doctor
    from pindiag.launch.machine import read_machine
    from pindiag.launch.nvml import Nvml

    began_s = time.monotonic()
    python = precheck.interpreter(python)
    nvml = Nvml()
    machine = read_machine(nvml)
    teller = _Teller(progress or Silence(), doctor.PARTS)
    links = Links(nvml, machine.gpus)
    readings = doctor.examine(python, began=teller.begin, while_copying=links.look)
    machine = msgspec.structs.replace(machine, gpus=links.gpus)
    return assemble(machine, readings, python=python, seconds=time.monotonic() - began_s)


def assemble(machine: Machine, readings: Mapping[str, Reading], *, python: str, seconds: float) -> Doctor:
    """Put together what was read and measured, what is known of the versions, and what limits the machine."""
    from pindiag.rules.known_versions import known_faults
    from pindiag.rules.machine_limits import limits

    missing = [NotMeasured(key=f"machine.{key}", reason=reason) for key, reason in sorted(machine.missing.items())]
    torch = _decoded("torch", Torch, readings, missing)
    copies = _decoded("copies", Copies, readings, missing)
    parts = [part for part in readings if part.startswith("hand_off ")]
    hand_off = [_decoded(part, HandOff, readings, missing) for part in parts]
    found = Doctor(
        pindiag_version=__version__,
        python=_below_home(python),
        machine=_with_load(machine, copies),
        torch=torch,
        copies=copies,
        hand_off=[each for each in hand_off if each is not None],
        seconds=seconds,
        known_faults=[] if torch is None else known_faults(torch.version, torch.python_version),
        not_measured=missing,
    )
    return msgspec.structs.replace(found, limits=limits(found))


class Links:
    """The GPUs, each with the fastest and widest PCIe link that was seen: one that idles saves power.

    Args:
        nvml: is asked again at every look.
        gpus: what it said first.
    """

    def __init__(self, nvml: Nvml, gpus: list[dict[str, Scalar]]) -> None:
        self._nvml = nvml
        self.gpus = gpus

    def look(self) -> None:
        """Read the links once more."""
        if self.gpus:
            for best, now in zip(self.gpus, self._nvml.gpus(), strict=False):
                for key in ("pcie_gen", "pcie_width"):
                    best[key] = _larger(best[key], now[key])


class _Teller:
    def __init__(self, progress: Observer, parts: Sequence[str]) -> None:
        self._progress = progress
        self._parts = list(parts)

    def begin(self, part: str) -> None:
        now = TITLES.get(part, f"workers started by {part.rpartition(' ')[2]}")
        done = self._parts.index(part)
        self._progress.step(Step(now=now, done=done, total=len(self._parts), seconds_left=None, best=None))


def _decoded(part: str, kind: type[Kind], readings: Mapping[str, Reading], missing: list[NotMeasured]) -> Kind | None:
    value: Any
    value, reason = readings[part]
    if reason is None:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            reason = f"the probe told something else than expected: {error}"
    missing.append(NotMeasured(key=part.replace(" ", "."), reason=reason))
    return None


def _with_load(machine: Machine, copies: Copies | None) -> Machine:
    """The machine, each GPU with whether copies went to it while its link was read."""
    uuid = None if copies is None else copies.device_uuid
    only = copies is not None and uuid is None and len(machine.gpus) == 1
    loaded = [only or (uuid is not None and str(gpu["uuid"]).endswith(uuid)) for gpu in machine.gpus]
    gpus = [{**gpu, "pcie_under_load": load} for gpu, load in zip(machine.gpus, loaded, strict=True)]
    return msgspec.structs.replace(machine, gpus=gpus)


def _larger(one: Scalar, other: Scalar) -> Scalar:
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    return other if one is None else one


def _below_home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path
