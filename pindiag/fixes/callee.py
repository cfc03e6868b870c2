"""Calls that take a loader's arguments: torch's own, and those of frameworks that make the loader themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import libcst as cst

from pindiag.fixes import arguments
from pindiag.fixes.arguments import Value

NAMES = ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "batch_size")


@dataclass(frozen=True)
class Callee:
    """A call that takes a loader's arguments, by its own names for them."""

    words: str
    """As people write it."""
    pattern: str
    """What the last part of the call's name looks like."""
    keywords: Mapping[str, str] = field(default_factory=lambda: {name: name for name in NAMES})
    """Arguments of DataLoader, each with the call's keyword for it."""
    defaults: Mapping[str, Value] = field(default_factory=dict)
    """By the call's keywords."""
    makers: tuple[str, ...] = ()
    """How names of modules begin that make loaders of what it was given; () for torch's own call."""
    maker: str | None = None
    """The library's module that made the loader; None: the script did."""
    positional: tuple[str, ...] = ()
    sure: tuple[str, ...] | None = None
    """Names of the call that take all keywords; None: all that match."""
    only_with_workers: tuple[str, ...] = ()
    """Keywords that are refused, or of no use, without workers."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """How a keyword's value is written, where it is more than the argument's."""

    def named(self, call: cst.Call) -> bool:
        """Whether a call has its name."""
        return re.fullmatch(self.pattern, called(call)) is not None

    def takes_all(self, call: cst.Call) -> bool:
        """Whether it is known that a call takes all keywords."""
        return self.sure is None or called(call) in self.sure

    def translated(self, changes: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, str]]:
        """Changes by the call's keywords; and those that it does not take, with the reason."""
        taken = {}
        for name, value in changes.items():
            if name in self.keywords:
                keyword = self.keywords[name]
                taken[keyword] = self.templates[keyword].format(value) if keyword in self.templates else value
        return taken, {name: f"{self.words} does not take it" for name in changes if name not in self.keywords}

    def written(self, changes: Mapping[str, Value]) -> str:
        """Changes as code."""
        taken, _ = self.translated(changes)
        said = (f"{name}={value if isinstance(value, str) else repr(value)}" for name, value in taken.items())
        return f"{self.words}({', '.join(said)})"

    def find(self, calls: list[tuple[cst.Call, int, int]], line: int | None) -> tuple[cst.Call, int] | None:
        """Of calls with their first and last lines: the innermost at the loader's line, or the only one of a framework.

        Returns:
            The call and its first line.
        """
        own = [(end - start, start, call) for call, start, end in calls if self.named(call)]
        if not self.makers:
            own = [each for each in own if line is not None and each[1] <= line <= each[1] + each[0]]
        elif len(own) > 1:
            return None
        if not own:
            return None
        _, start, call = min(own, key=lambda each: each[0])
        return call, start

    def missing(self, line: int | None) -> str:
        """Why no call was found."""
        if self.makers:
            return f"{self.maker} makes the loader of what {self.words}(...) says, and no single such call stands here"
        by = f": {self.maker} makes it; say it where the script calls that" if self.maker else ""
        return f"no {self.words}(...) call stands at line {line}{by}"


def called(call: cst.Call) -> str:
    """The last part of a call's name."""
    whole = arguments.code(call.func)
    return whole if whole == "super().__init__" else whole.rpartition(".")[2]


TORCH = Callee(
    words="DataLoader",
    pattern=r"super\(\).__init__|.*Loader",
    keywords={name: name for name in (*NAMES, "timeout", "multiprocessing_context")},
    defaults={
        "num_workers": 0,
        "pin_memory": False,
        "prefetch_factor": None,
        "persistent_workers": False,
        "batch_size": 1,
        "timeout": 0,
        "multiprocessing_context": None,
    },
    positional=(
        *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory"),
        *("drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
    ),
    sure=("DataLoader", "StatefulDataLoader", "super().__init__"),
    only_with_workers=("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context"),
)
FRAMEWORKS = (
    Callee(
        words="TrainingArguments",
        pattern=r"\w*TrainingArguments|(SFT|DPO|ORPO|KTO|CPO|GRPO|RLOO|Reward)Config",
        keywords={
            **{name: f"dataloader_{name}" for name in NAMES},
            "batch_size": "per_device_train_batch_size",
            "non_blocking": "accelerator_config",
        },
        defaults={
            "dataloader_num_workers": 0,
            "dataloader_pin_memory": True,
            "dataloader_prefetch_factor": None,
            "dataloader_persistent_workers": False,
        },
        makers=("transformers.", "sentence_transformers.", "trl."),
        only_with_workers=("dataloader_prefetch_factor", "dataloader_persistent_workers"),
        templates={"accelerator_config": '{{"non_blocking": {}}}'},
    ),
    Callee(
        words="LightningDataModule.from_datasets",
        pattern="from_datasets",
        keywords={"num_workers": "num_workers", "batch_size": "batch_size"},
        defaults={"num_workers": 0, "batch_size": 1},
        makers=("lightning.pytorch.core.datamodule", "pytorch_lightning.core.datamodule"),
    ),
    Callee(
        words="NeuralNet",
        pattern=r"NeuralNet\w*",
        keywords={name: f"iterator_train__{name}" for name in NAMES},
        makers=("skorch.",),
        only_with_workers=("iterator_train__prefetch_factor", "iterator_train__persistent_workers"),
    ),
)


def callee(maker: str | None) -> Callee:
    """Where the arguments of a loader are said.

    Args:
        maker: the library's module that makes the loader; None: the script does.
    """
    known = next((each for each in FRAMEWORKS if maker is not None and maker.startswith(each.makers)), TORCH)
    return replace(known, maker=maker)
