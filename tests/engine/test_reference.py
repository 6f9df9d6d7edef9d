"""The reference implementation beside the project says the same, to the bit. Left out where there is no such folder."""

import importlib.util
import sys

import pytest


@pytest.fixture
def check(shared, monkeypatch):
    """main(seed, cases) of the reference's own comparison with `serve`: whether anything differs."""
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script puts its own folder there
    spec = importlib.util.spec_from_file_location("oracle_check", shared / "accept" / "oracle_check.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.main


@pytest.mark.parametrize("seed", range(1, 11))
def test_serve_equals_the_reference(check, capsys, seed):
    differs = check(seed, 60)
    printed = capsys.readouterr().out
    assert not differs, printed
    assert "60 cases" in printed and " 0 differ" in printed
