# SPDX-License-Identifier: BSD-2-Clause
"""The note that a scratch cluster or cloud keeps of itself, and its environment."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import DecodeError, ValidationError, json

from moorage.errors import BadInput, Failed, NotFound, WrongState
from moorage.model.misfit import misfit


class Noted(Protocol):
    """What a note says."""

    @property
    def root(self) -> str:
        """The directory that it is about, as text."""

    @property
    def path(self) -> Path:
        """The same."""


N = TypeVar("N", bound=Noted)


def read(note: Path, kind: type[N], what: str, *, hint: str = "") -> N:
    """Return what a note says.

    Parameters
    ----------
    what
        What it describes: a cluster, or a cloud.
    hint
        What to do where there is none.

    Raises
    ------
    NotFound
        If there is none.
    BadInput
        If it is garbled.
    Failed
        If this user may not read it.
    WrongState
        If it is a copy: what it says is about another directory.
    """
    try:
        found = json.decode(note.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(
            f"there is no scratch {what} in {note.parent}", hint=hint
        ) from None
    except OSError as error:
        raise Failed(f"{note} cannot be read: {error.strerror}") from None
    except (DecodeError, UnicodeError, RecursionError) as error:
        told = misfit(error) if isinstance(error, ValidationError) else error
        raise BadInput(f"{note} describes no scratch {what}: {told}") from None
    if found.path.resolve() != note.parent.resolve():
        raise WrongState(
            f"{note} is that of the {what} in {found.root}",
            hint=f"moorage down {found.root}",
        )
    return found


def shell(environment: Mapping[str, str]) -> str:
    """Return an environment as shell commands; its programs come first in PATH."""
    found = dict(environment)
    bin_dir = found.pop("PATH").split(":")[0]
    lines = [f"export {name}={shlex.quote(value)}" for name, value in found.items()]
    return "\n".join([*lines, f'export PATH={shlex.quote(bin_dir)}:"$PATH"'])
