# SPDX-License-Identifier: BSD-2-Clause
"""Each field of an operation says what it is, where a machine reads it."""

import re
from typing import Any

import pytest

from moorage.errors import BadInput
from moorage.jobs import Operation
from moorage.jobs.fields import Field, fields
from moorage.ops import OPERATIONS, parse
from moorage.ops.backup import MODES

KINDS = [*OPERATIONS.values(), *MODES.values()]
FIELDS = [
    pytest.param(field, id=f"{kind.__name__}.{field.name}")
    for kind in KINDS
    for field in fields(kind)
]


def field(kind: type[Operation], name: str) -> Field:
    return next(one for one in fields(kind) if one.name == name)


@pytest.mark.parametrize("one", FIELDS)
def test_a_field_has_words_and_a_type(one: Field) -> None:
    assert one.words
    assert one.type


@pytest.mark.parametrize("one", FIELDS)
def test_only_free_parameters_are_of_any_kind(one: Field) -> None:
    assert "Any" not in one.type.replace("dict[str, Any]", "")


@pytest.mark.parametrize("one", FIELDS)
def test_a_number_has_a_unit_or_a_range(one: Field) -> None:
    if one.type in ("int", "float"):
        assert one.unit or one.least is not None, one.type


@pytest.mark.parametrize("one", FIELDS)
def test_words_name_no_unit_that_the_type_tells(one: Field) -> None:
    if one.unit == "MiB":
        assert not re.search(r"\bMiB\b", one.words)


@pytest.mark.parametrize("one", FIELDS)
def test_a_default_is_one_of_the_choices(one: Field) -> None:
    if one.choices and one.default is not None:
        assert one.default in one.choices


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
