# SPDX-License-Identifier: BSD-2-Clause
"""Where a program gets its cluster from, and where it saves one."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from moorage.cli.declaration import Options
from moorage.cli.htools.files import read_text
from moorage.cli.htools.values import is_yes, names, verbosity
from moorage.errors import BadInput, NotFound
from moorage.htools.fleet import Fleet
from moorage.htools.inst import Load
from moorage.htools.loader import Loaded, Reading, load
from moorage.htools.state import State


def fleet(options: Options) -> Fleet:
    """Return the cluster that the options name.

    Raises
    ------
    BadInput
        If they name none, or several.
    """
    given = [n for n in _READERS if getattr(options, n, None) not in (None, [])]
    if len(given) != 1:
        raise BadInput(
            "Only one of the rapi, luxi, and data files options should be given."
            if given
            else "failed to load data, aborting: No backend selected! Exiting.",
            hint="give one of -t FILE, -m ADDRESS, -L, -I FILE",
        )
    return _READERS[given[0]](getattr(options, given[0]))


def _text(path: str) -> Fleet:
    from moorage.htools.formats import text  # noqa: PLC0415 - start-up time

    return text.parse(read_text(path), path)


def _ialloc(path: str) -> Fleet:
    from moorage.htools.formats import iallocator  # noqa: PLC0415 - start-up time

    return iallocator.parse(read_text(path), path).fleet


def _simulate(specs: list[str]) -> Fleet:
    from moorage.htools.formats import simulate  # noqa: PLC0415 - start-up time

    return simulate.parse(specs)


def _rapi(address: str) -> Fleet:
    from moorage.cli.htools.remote import rapi  # noqa: PLC0415 - start-up time

    return rapi(address)


def _luxi(path: str) -> Fleet:
    from moorage.cli.htools.remote import luxi  # noqa: PLC0415 - start-up time

    return luxi(path)


__all__ = [
    "cluster", "fleet", "read_text", "reading", "ready", "save", "warn", "write",
]  # fmt: skip
_READERS: Final[dict[str, Callable[[Any], Fleet]]] = {
    "text": _text,
    "rapi": _rapi,
    "luxi": _luxi,
    "ialloc": _ialloc,
    "simulate": _simulate,
}


def reading(options: Options) -> Reading:
    """Return how the options say to read a cluster."""
    return Reading(
        loads=_loads(getattr(options, "dynu", None)),
        no_loads=getattr(options, "ignore_dynu", False),
        exclusion_tags=names(getattr(options, "exclusion_tags", "")),
        only=names(getattr(options, "select", "")),
        without=names(getattr(options, "exclude", "")),
        kvm_memory=getattr(options, "kvm_memory", 4096),
        offline=tuple(getattr(options, "offline", ())),
        max_cpu=getattr(options, "max_cpu", None),
        min_disk=getattr(options, "min_disk", 0.0),
    )


def _loads(path: str | None) -> Sequence[tuple[str, Load]]:
    """Return the measured load in a file."""
    if not path:
        return ()
    from moorage.htools.formats.loads import parse_loads  # noqa: PLC0415 - start-up

    return parse_loads(read_text(path), path)


def cluster(options: Options) -> Loaded:
    """Return the cluster, ready to plan on; warn about what is missing."""
    return ready(options, fleet(options))


def ready(options: Options, rows: Fleet) -> Loaded:
    """Return a cluster that was read, ready to plan on, with its load."""
    how = reading(options)
    if is_yes(getattr(options, "mond", None)):
        from moorage.cli.htools.mond import measured  # noqa: PLC0415 - start-up time

        how = how._replace(measured=measured(options, rows))
    found = load(rows, how)
    if verbosity(options) > 0:
        warn(found.warnings)
    return found


def warn(warnings: Sequence[str]) -> None:
    """Tell what is odd about a cluster."""
    if warnings:
        lines = "".join(f"  - {warning}\n" for warning in warnings)
        sys.stderr.write(f"Warning: cluster has inconsistent data:\n{lines}\n")


def save(path: str | None, suffix: str, what: str, state: State) -> None:
    """Write the cluster to ``path.suffix`` as text, if a path is given."""
    if not path:
        return
    from moorage.htools.export import saved  # noqa: PLC0415 - start-up time
    from moorage.htools.formats import text  # noqa: PLC0415 - start-up time

    target = f"{path}.{suffix}"
    write(target, text.dump(saved(state)))
    sys.stderr.write(f"The cluster state {what} has been written to file '{target}'\n")


def write(path: str, content: str) -> None:
    """Write a file, or say why not."""
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - start-up time
            file.write(content)
    except OSError as error:
        raise NotFound(f"cannot write {path}: {error.strerror}") from error
