"""`pindiag demo` as it is called."""

from pindiag.api.demonstration import SAID


def test_the_verdict_is_printed_with_where_the_report_lies(pindiag):
    said = pindiag("demo", "-o", "here")
    assert said.code == 0
    assert SAID in said.err
    assert said.out.splitlines()[-1] == "Report: here/report.html"
    assert pindiag("demo", "-o", "here").code == 2
