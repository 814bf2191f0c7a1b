# SPDX-License-Identifier: BSD-2-Clause
"""Each field of an operation says what it is, where a machine reads it."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from moorage.errors import BadInput
from moorage.jobs import Operation
from moorage.jobs.fields import Field, fields
from moorage.ops import MODES, OPERATIONS, parse

KINDS = [*OPERATIONS.values(), *MODES.values()]
FIELDS = {
    f"{kind.__name__}.{field.name}": field for kind in KINDS for field in fields(kind)
}


def field(kind: type[Operation], name: str) -> Field:
    return next(one for one in fields(kind) if one.name == name)


def those(claim: Callable[[Field], object]) -> list[str]:
    """Return the fields of which something is true."""
    return [name for name, field in FIELDS.items() if claim(field)]


def test_a_field_has_words_and_a_type() -> None:
    assert those(lambda one: not (one.words and one.type)) == []


def test_only_free_parameters_are_of_any_kind() -> None:
    assert those(lambda one: "Any" in one.type.replace("dict[str, Any]", "")) == []


def test_a_number_has_a_unit_or_a_range() -> None:
    bare = those(lambda one: not one.unit and one.least is None)
    assert [name for name in bare if FIELDS[name].type in ("int", "float")] == []


def test_words_name_no_unit_that_the_type_tells() -> None:
    told = those(lambda one: re.search(r"\bMiB\b", one.words))
    assert [name for name in told if FIELDS[name].unit == "MiB"] == []


def test_a_default_is_one_of_the_choices() -> None:
    limited = those(lambda one: one.choices and one.default is not None)
    assert [n for n in limited if FIELDS[n].default not in FIELDS[n].choices] == []


def test_a_field_tells_all_that_is_declared_of_it() -> None:
    assert field(OPERATIONS["OP_DISK_GROW"], "amount") == Field(
        name="amount",
        type="int",
        words="What to add, or (`absolute`) the new size.",
        unit="MiB",
        least=0,
        most=2**44,
        required=True,
    )
    assert field(OPERATIONS["OP_DISK_ADD"], "mode") == Field(
        name="mode",
        type="str",
        words="`rw`, or `ro` for a disk that no guest writes to.",
        choices=("rw", "ro"),
        default="rw",
    )


def test_what_nobody_reads_says_why() -> None:
    words = field(OPERATIONS["OP_INSTANCE_CREATE"], "ip_check").words
    assert words == "has no effect: nobody pings an address"


@pytest.mark.parametrize(
    ("opcode", "sentence"),
    [
        (
            {"OP_ID": "OP_NODE_EVACUATE", "node_name": "node1", "mode": "most"},
            (
                "OP_NODE_EVACUATE: mode is all, primary-only or secondary-only, "
                "not 'most'"
            ),
        ),
        (
            {"OP_ID": "OP_DISK_GROW", "disk": "data1", "amount": -1},
            "OP_DISK_GROW: 'amount' is at least 0",
        ),
        (
            {"OP_ID": "OP_TEST_DELAY", "duration": 4000},
            "OP_TEST_DELAY: 'duration' is at most 3600",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    opcode: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput) as refused:
        parse(opcode)
    assert refused.value.message == sentence
