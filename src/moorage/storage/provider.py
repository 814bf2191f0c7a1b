# SPDX-License-Identifier: BSD-2-Clause
"""What makes an ExtStorage provider valid: on a node, in a node group, for a disk."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from moorage.disk_templates import LIMITED
from moorage.errors import BadInput
from moorage.model import Os, Provider
from moorage.storage.validation import is_provider_name

SCRIPTS = {
    "create": "make the volume, `VOL_SIZE` MiB large",
    "attach": "make it usable on this node; print where it is",
    "detach": "take back `attach`; the data stays",
    "remove": "destroy the volume",
    "grow": "enlarge it from `VOL_SIZE` to `VOL_NEW_SIZE` MiB",
    "setinfo": "keep the note `VOL_METADATA` beside it",
    "verify": "look at the parameters, before anything is made with them; what it "
    "prints is the reason of the refusal",
}
"""The scripts that every provider has, and what each is to do."""
OPTIONAL = {
    "snapshot": "copy it to the new volume `VOL_SNAPSHOT_NAME`",
    "open": "this node is going to write",
    "close": "this node stops writing",
    "list": "print a line for each volume: name, size in MiB (or `-`), any words",
    "capacity": "print total and free MiB",
}
"""The scripts that the interface got later."""
PARAMETERS = "parameters.list"
PLACES = "places.list"
"""Which of its parameters name directories; a provider may lack it."""
BY_UUID = "by-uuid"
"""A file, whatever is in it, of a provider that knows volumes by ``VOL_NAME`` alone."""
SEARCH_PATH = (
    "/srv/ganeti/extstorage",
    "/usr/local/lib/ganeti/extstorage",
    "/usr/lib/ganeti/extstorage",
    "/usr/share/ganeti/extstorage",
)
"""Where providers are looked for; the first directory wins."""
_OURS = frozenset({"provider", "access"})
"""Parameters that every provider has without listing them."""


@dataclass(frozen=True, slots=True)
class FileFact:
    """What a node found at a path, links followed.

    Attributes
    ----------
    missing
        Why it cannot be looked at, in the system's words; empty when it can.
    regular
        Whether it is a regular file.
    executable
        Whether its owner may execute it.
    distrust
        Who besides root could change it; empty if nobody.
    """

    missing: str = ""
    regular: bool = False
    executable: bool = False
    distrust: str = ""

    def problem(self, name: str, path: str, *, runs: bool) -> str:
        """Return why the file `name` in a directory is of no use; empty if it is.

        Parameters
        ----------
        runs
            Whether it is a script.
        """
        told = f"File '{name}' under path '{path}'"
        if self.missing:
            return f"{told} is missing ({self.missing})"
        if not self.regular:
            return f"{told} is not a regular file"
        if self.distrust:
            return f"{told} is not trusted: {self.distrust}"
        return f"{told} is not executable" if runs and not self.executable else ""


def room_key(key: str, pool: str) -> str:
    """Return the key of a storage unit, of a storage pool that is a room of its own.

    Parameters
    ----------
    key
        Of the storage: the provider's name.
    pool
        The pool's name; empty where it is no room of its own.

    >>> room_key("nas", "fast"), room_key("nas", "")
    ('nas/fast', 'nas')
    """
    return f"{key}/{pool}" if pool else key


def not_found(name: str) -> str:
    """Return the sentence about a provider that no directory holds."""
    return f"Directory for External Storage Provider {name} not found in search path"


def judge(
    name: str,
    path: str,
    files: Mapping[str, FileFact],
    listed: str,
    places: str = "",
) -> Provider:
    """Return the provider that a directory holds.

    Parameters
    ----------
    files
        One entry for each of :data:`SCRIPTS`, :data:`OPTIONAL`, :data:`PARAMETERS`,
        :data:`BY_UUID`.
    listed, places
        Content of :data:`PARAMETERS`, and of :data:`PLACES`.
    """
    required = (*SCRIPTS, PARAMETERS)
    marked = not files[BY_UUID].missing
    present = [one for one in OPTIONAL if not files[one].missing]
    problems = (
        files[one].problem(one, path, runs=one != PARAMETERS)
        for one in (*required, *present)
    )
    return Provider(
        name=name,
        path=path,
        optional=tuple(present),
        parameters=parse_parameters(listed),
        problem=next(filter(None, problems), ""),
        places=tuple(parse_parameters(places)),
        by_uuid=marked,
    )


def unusable(name: str, path: str) -> Provider:
    """Return the record of an entry that is no directory, or has no valid name."""
    return Provider(name=name, path=path, problem=not_found(name))


def unreadable(name: str, path: str, why: str, listed: str = PARAMETERS) -> Provider:
    """Return the record of a provider one of whose lists cannot be read."""
    problem = f"Error while reading the EXT parameters file at {path}/{listed}"
    return Provider(name=name, path=path, problem=f"{problem}: {why}")


def parse_parameters(listed: str) -> dict[str, str]:
    r"""Return name and description of each line; a description may be missing.

    >>> parse_parameters("dir  where images are\n\nusp_*\n")
    {'dir': 'where images are', 'usp_*': ''}
    """
    lines = (line.split(None, 1) for line in listed.splitlines() if line.strip())
    return {words[0]: words[1].strip() if words[1:] else "" for words in lines}


def usable(found: Iterable[Provider]) -> dict[str, Provider]:
    """Return the provider that each name stands for, of all that a node found.

    The first directory wins, valid or not; what is no directory does not count.
    """
    chosen: dict[str, Provider] = {}
    for one in found:
        if is_provider_name(one.name) and one.problem != not_found(one.name):
            chosen.setdefault(one.name, one)
    return chosen


def provider_called(name: str, found: Iterable[Provider]) -> Provider | None:
    """Return the provider that a name stands for, of all that a node found."""
    return usable(one for one in found if one.name == name).get(name)


def valid_for_group(nodes: Mapping[str, Mapping[str, Provider]], name: str) -> bool:
    """Say whether every node of a group has the provider, and it is valid there.

    Parameters
    ----------
    nodes
        What :func:`usable` says, for each node of the group that is online and may
        run instances. A group without such nodes has no valid provider.
    """
    found = [providers.get(name) for providers in nodes.values()]
    return bool(found) and all(one is not None and not one.problem for one in found)


def common_parameters(found: Iterable[Provider | Os]) -> dict[str, str]:
    """Return the parameters that every valid one of `found` has."""
    valid = [one.parameters for one in found if not one.problem]
    if not valid:
        return {}
    first, *rest = valid
    return {key: first[key] for key in first if all(key in other for other in rest)}


def check_parameters(
    given: Mapping[str, Any], provider: Provider, *, force: bool = False
) -> None:
    """Refuse parameters that a provider does not list.

    Parameters
    ----------
    given
        The parameters of a disk.
    provider
        Its :attr:`~moorage.storage.Provider.parameters` may hold wildcards (``usp_*``).
    force
        Accept any; for providers whose list is behind their scripts.

    Raises
    ------
    BadInput
        The sentence names those that are allowed.
    """
    allowed = [*provider.parameters]
    own = [name for name in given if name not in LIMITED]
    unknown = [name for name in own if not _is_listed(name, allowed)]
    if unknown and not force:
        told = ", ".join(sorted(allowed)) or "no parameters"
        raise BadInput(
            f"ExtStorage provider '{provider.name}' has no parameter "
            f"'{min(unknown)}': it takes {told}",
            hint="--force-params hands it over all the same",
            allowed=sorted(allowed),
            unknown=sorted(unknown),
        )


def lists(provider: Provider, name: str) -> bool:
    """Whether a provider lists a parameter, by its name or by a wildcard.

    >>> nas = Provider(name="nas", path="/srv/nas", parameters={"reuse_*": ""})
    >>> lists(nas, "reuse_data")
    True
    """
    return _is_listed(name, provider.parameters)


def _is_listed(name: str, allowed: Iterable[str]) -> bool:
    lower = name.lower()  # a script sees the name in capitals
    return lower in _OURS or any(fnmatchcase(lower, one.lower()) for one in allowed)
