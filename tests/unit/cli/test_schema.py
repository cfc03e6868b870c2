"""`pindiag schema` describes what the product writes."""

import json

import pytest
from click.testing import CliRunner

from pindiag.cli.schema import command
from pindiag.comparison_model import Comparison
from pindiag.doctor_model import Doctor
from pindiag.model import Report


@pytest.mark.parametrize(
    ("words", "kind"), [([], Report), (["report"], Report), (["doctor"], Doctor), (["comparison"], Comparison)]
)
def test_all_keys_are_described(words, kind):
    said = CliRunner().invoke(command, words)
    assert said.exit_code == 0
    schema = json.loads(said.output)
    described = schema["$defs"][kind.__name__]
    assert schema["$ref"] == f"#/$defs/{kind.__name__}"
    assert set(described["properties"]) == set(kind.__struct_fields__)


def test_nothing_else_has_a_schema():
    said = CliRunner().invoke(command, ["journal"])
    assert said.exit_code == 2
    assert "'report', 'doctor'" in said.output
