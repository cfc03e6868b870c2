from pathlib import Path

import pytest

from .product import Product


@pytest.fixture
def product(tmp_path: Path) -> Product:
    return Product(tmp_path)
