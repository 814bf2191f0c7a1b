# SPDX-License-Identifier: BSD-2-Clause
"""Runs of programs on bad input, and the one sentence that each must say."""

import re
from importlib import import_module
from random import Random
from typing import Any, Final

from moorage.htools import sample
from moorage.htools.fleet import Fleet

PLACE: Final = re.compile(r": line [0-9]+, column [0-9]+: ")


def run(program: str, *words: object) -> Any:
    """Run a program in this process; return its exit status."""
    try:
        return import_module(f"moorage.cli.htools.{program}").main(
            list(map(str, words))
        )
    except SystemExit as end:
        return end.code


def sentence(capsys: Any, status: Any) -> str:
    """Return the one sentence after "Error:"; '' if there was no error."""
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    errors = [line for line in said.err.splitlines() if line.startswith("Error: ")]
    if not errors:
        assert status in {0, 1}  # hcheck's 1 says that something is to be done
        return ""
    assert status == 1
    assert len(errors) == 1, said.err
    after = said.err.split("Error: ")[1].splitlines()
    assert len(after) == 1 or (len(after) == 2 and after[1].startswith("hint: "))
    assert errors[0].isprintable()
    assert len(errors[0]) < 700
    return errors[0].removeprefix("Error: ")


def fleet(draw: Random) -> Fleet:
    """Return a small cluster of any kind."""
    return sample.cluster(
        draw.randrange(50),
        sample.Shape(
            kind=draw.choice(sample.KINDS),
            nodes=4,
            instances=8,
            groups=draw.choice((1, 1, 2)),
            oddity=0.2,
            exclusive=draw.random() < 0.1,
        ),
    )
