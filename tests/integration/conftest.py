import uuid
from pathlib import Path

import pytest

from .launches import MARK
from .product import Product


@pytest.fixture
def product(tmp_path: Path) -> Product:
    return Product(tmp_path)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What all processes of this test have in their environment."""
    name = uuid.uuid4().hex
    monkeypatch.setenv(MARK, name)
    return name
