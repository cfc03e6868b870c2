"""README says what the code says."""

import re
from pathlib import Path

from pindiag import rules
from pindiag.errors import ExitCode

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_rule_table_is_made_from_code() -> None:
    table = re.search(r"<!-- pindiag rules --markdown -->\n(.*?)\n<!-- end -->", README, re.DOTALL)
    assert table is not None
    assert table[1].strip() == rules.markdown_table().strip()


def test_all_exit_codes_are_explained() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


def test_pictures_exist() -> None:
    folder = Path(__file__).parents[2]
    pictures = re.findall(r'(?:src|srcset)="(docs/[^"]+)"', README)
    assert pictures
    assert all((folder / picture).is_file() for picture in pictures)
