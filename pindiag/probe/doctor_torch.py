"""What torch is and can use here, as `pindiag doctor` asks it in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import platform
from typing import Any

import torch

from . import device


def describe() -> dict[str, Any]:
    """Versions, the accelerator or why there is none, and how workers are started and share tensors.

    No CUDA context is made: workers are forked from this process later. The fields are those of `doctor_model.Torch`.
    """
    accelerator = device.accelerator()
    return {
        "version": torch.__version__,
        "python_version": platform.python_version(),
        "cuda_version": torch.version.cuda,
        "hip_version": torch.version.hip,
        "accelerator": accelerator,
        "no_accelerator": None if accelerator else _why_none(),
        "intraop_threads": torch.get_num_threads(),
        "start_method": multiprocessing.get_start_method(),
        "start_methods": multiprocessing.get_all_start_methods(),
        "sharing_strategy": torch.multiprocessing.get_sharing_strategy(),  # type: ignore[no-untyped-call]
    }


def _why_none() -> str:
    if not torch.version.cuda and not torch.version.hip:
        return f"torch {torch.__version__} is built without CUDA"
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides all GPUs"
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return " ".join(str(error).split())
    return "torch finds no accelerator"
