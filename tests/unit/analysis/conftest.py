"""Live sweeps that several tests of analysis start from."""

import pytest

from .live_sweeps import recorded


@pytest.fixture(scope="session")
def live(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("live"))


@pytest.fixture(scope="session")
def few_pairs(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("few"), pairs=2)


@pytest.fixture(scope="session")
def many_rounds(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("many"), rounds=10, pairs=0)


@pytest.fixture(scope="session")
def analysis(live):
    return live.analysed()
