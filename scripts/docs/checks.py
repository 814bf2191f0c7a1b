# SPDX-License-Identifier: BSD-2-Clause
"""What verify finds, with the codes that monitors read."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from declared import Lines, code, table

from moorage.consistency import CODES
from moorage.consistency.checks import OF_BOTH, OF_FILES, OF_STORES
from moorage.ops.cluster import checks_records
from moorage.ops.cluster.verify_codes import CHECKS, HOOKS, KINDS, UNUSED

_Check = Callable[..., object]


def _does(check: _Check) -> str:
    """Return what a check does, in a sentence.

    >>> _does(checks_records.consistent)
    "Find all that Ganeti's own check of a configuration finds."
    """
    return (check.__doc__ or "").partition("\n")[0]


def codes() -> Lines:
    """Yield the codes of checks."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, what in CODES.items():
        found[name].append(f"Find {what}.")
    for check, name in CHECKS.items():
        if name and check is not checks_records.consistent:
            found[name].append(_does(check))
    found[HOOKS].append("Find hooks of verify that fail.")
    rows = [[code(name), " ".join(found[name])] for name in sorted(found)]
    yield from table(("code", "checks"), rows)


def by_object() -> Lines:
    """Yield the codes of findings whose check has none, and those checks."""
    yield from table(("about", "code"), [[one, code(it)] for one, it in KINDS.items()])
    yield from _list(check for check, name in CHECKS.items() if not name)


def of_configuration() -> Lines:
    """Yield what is looked at in any configuration, then what in a file, in a store."""
    yield from _list(OF_BOTH)
    yield "In a file of Ganeti's alone:"
    yield ""
    yield from _list(OF_FILES)
    yield "In a store alone:"
    yield ""
    yield from _list(OF_STORES)


def unused() -> Lines:
    """Yield the codes that nothing has."""
    yield ", ".join(code(one) for one in sorted(UNUSED)) + "."
    yield ""


def _list(checks: Iterable[_Check]) -> Lines:
    for one in checks:
        yield f"- {_does(one)}"
    yield ""
