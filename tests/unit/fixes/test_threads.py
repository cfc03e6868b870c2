"""The number of threads behind the imports: where the line stands, what is changed in place of it, what is refused."""

import pytest

from pindiag.fixes.inserted import KEEP_THREADS
from pindiag.fixes.threads import WHY, with_threads

LINE = f"\n{WHY}\ntorch.set_num_threads(2)\n"
CASES = {
    "behind all imports": (
        '"""Doc."""\nimport os, torch  # all\nfrom torch import nn\n\n\ndef main():\n    pass\n',
        f'"""Doc."""\nimport os, torch  # all\nfrom torch import nn\n{LINE}\n\ndef main():\n    pass\n',
    ),
    "between them other lines": (
        "import torch\nuse('agg')\nimport plot\nx = 1\n",
        f"import torch\nuse('agg')\nimport plot\n{LINE}x = 1\n",
    ),
    "not behind one that comes later": (
        "import torch\ndef f(): pass\nimport late\n",
        f"import torch\n{LINE}def f(): pass\nimport late\n",
    ),
    "the number that stands there": (
        "import torch\ntorch.set_num_threads( 8 )  # all\n",
        "import torch\ntorch.set_num_threads( 2 )  # all\n",
    ),
    "beside the line that keeps the number": (
        f"import torch\n{KEEP_THREADS}\n",
        f"import torch\n{LINE}{KEEP_THREADS}\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_set_once_and_nothing_else_changes(name):
    before, after = CASES[name]
    assert with_threads(before, 2) == (after, None)
    assert with_threads(after, 2) == (after, None)
    compile(after, "train.py", "exec")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("from torch import nn\n", "does not import torch by that name"),
        ("import torch as t\n", "does not import torch by that name"),
        ("import torch\ntorch.set_num_threads(args.n)\n", "by `torch.set_num_threads(args.n)`; change it there"),
        ("import torch\ntorch.set_num_threads(1)\ntorch.set_num_threads(4)\n", "in several places"),
    ],
)
def test_where_it_cannot_be_set_the_reason_is_said(source, reason):
    after, said = with_threads(source, 2)
    assert after == source
    assert reason in said
