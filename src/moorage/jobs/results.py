# SPDX-License-Identifier: BSD-2-Clause
"""What jobs report: the types that several operations share.

An operation says by the return type of its ``result`` what its jobs report. Clients get
it as JSON: tuples as lists, structs as objects.
"""

from typing import Any, TypeAlias, get_type_hints

from msgspec import Struct

from moorage.model.values import Value

from .operation import Operation

Changed: TypeAlias = tuple[str, Value]
"""Name of what was changed, and its new value."""
FollowUps: TypeAlias = tuple[tuple[bool, int], ...]
"""``[true, ID]`` of each job that follows; the engine fills them in."""


class Following(Struct, frozen=True, kw_only=True):
    """The jobs that follow the one that reports this.

    Attributes
    ----------
    names
        What each of them is for, in their order: names of instances or nodes.
    """

    jobs: FollowUps = ()
    names: tuple[str, ...] = ()


class Sent(Struct, frozen=True, kw_only=True):
    """Where an instance goes, by the jobs that follow the one that reports this.

    Attributes
    ----------
    target_node
        Name of the node.
    """

    target_node: str
    jobs: FollowUps = ()


def result_of(operation: type[Operation]) -> Any:  # noqa: ANN401 - it may be a union
    """Return the type of what the jobs of an operation report; None for nothing."""
    if operation.result is Operation.result:
        return None
    return get_type_hints(operation.result)["return"]
