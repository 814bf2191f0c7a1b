# SPDX-License-Identifier: BSD-2-Clause
"""What docstrings show with ``>>>`` is what happens."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCES.rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_tell_the_truth(name: str):
    tried = doctest.testmod(import_module(name))
    assert tried.attempted
    assert not tried.failed
