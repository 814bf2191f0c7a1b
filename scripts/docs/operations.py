# SPDX-License-Identifier: BSD-2-Clause
"""Parts of the reference: operations, with their fields and results."""

from declared import Lines, code, fields, records, rest, type_name

from moorage.jobs import COMMON, Operation
from moorage.jobs.results import result_of
from moorage.jobs.words import about
from moorage.ops import OPERATIONS


def common() -> Lines:
    """Yield the fields that every opcode has."""
    told = ", ".join(sorted(map(code, COMMON - {"OP_ID"})))
    yield f"Every opcode also takes {told}."


def operations() -> Lines:
    """Yield every operation with its fields."""
    for op_id, operation in sorted(OPERATIONS.items()):
        yield from _operation(op_id, operation)


def _operation(op_id: str, operation: type[Operation]) -> Lines:
    yield f"## {op_id}"
    yield ""
    yield f"{about(operation)}."
    yield ""
    if rest(operation):
        yield from (rest(operation), "")
    yield from fields(operation)
    yield from _result(operation)


def _result(operation: type[Operation]) -> Lines:
    kind = result_of(operation)
    if kind is None:
        yield from ("Reports nothing.", "")
        return
    said = about(operation.result).removeprefix("Return ")
    yield from (f"Reports {said}: {code(type_name(kind))}.", "")


def result_types() -> Lines:
    """Yield the records that results are made of."""
    known = {one for each in OPERATIONS.values() for one in records(result_of(each))}
    for one in sorted(known, key=lambda one: one.__name__):
        yield from (f"### {one.__name__}", "", f"{about(one)}.", "")
        yield from fields(one)
