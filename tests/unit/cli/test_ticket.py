"""`pindiag ticket` as it is called."""

import synthetic_run


def test_markdown_is_all_of_standard_output_and_the_zip_is_named_beside_it(pindiag, nowhere):
    run = synthetic_run.write_live_run(nowhere / "run", configurations=2, rounds=2, pairs=0)
    said = pindiag("ticket", run.path, "-o", "t.zip", "--limit", "1k")
    assert said.code == 0
    assert said.out.startswith("**")
    assert said.out.rstrip().splitlines()[-1].startswith("- Not attached: ")
    assert "pindiag: To attach: t.zip\n" in said.err
    assert "pindiag: Left out of it: `report.html`" in said.err
    assert (nowhere / "t.zip").stat().st_size <= 1024


def test_a_folder_without_a_run_is_an_error(pindiag):
    assert pindiag("ticket", ".").code == 2
