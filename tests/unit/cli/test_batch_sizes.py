import click
import pytest

from pindiag.cli.run import BatchSizes


def test_sizes_are_told_by_commas():
    assert BatchSizes().convert("64, 32,64", None, None) == [64, 32]
    assert BatchSizes().convert("default", None, None) == []
    assert BatchSizes().convert([8], None, None) == [8]


@pytest.mark.parametrize("wrong", ["train.py", "0", "32,", "-4", "1.5", ""])
def test_anything_else_is_refused(wrong):
    with pytest.raises(click.BadParameter, match="no list of sizes such as 32,64,128"):
        BatchSizes().convert(wrong, None, None)
