# SPDX-License-Identifier: BSD-2-Clause
"""A configuration of Ganeti as a document: its version, its parts, their shape."""

from collections.abc import Iterator
from json import loads
from typing import Annotated, Any, NamedTuple

from msgspec import DecodeError, Meta, Struct, ValidationError, convert, json

from moorage.errors import BadInput
from moorage.model.misfit import misfit

Document = dict[str, Any]
"""A ``config.data``, as JSON values."""
Part = dict[str, Any]
"""An object of a document."""

_DEEPEST = 40
"""Levels of lists and maps below each other: several times what Ganeti writes."""
_MAJOR, _MINOR = 1_000_000, 10_000


class Version(NamedTuple):
    """A version of the file: that of the Ganeti which wrote it.

    >>> str(Version(2, 16)), Version(3, 0) > Version(2, 16), Version(3, 1).number
    ('2.16', True, 3010000)
    """

    major: int
    minor: int

    @property
    def number(self) -> int:
        """How a document says it."""
        return self.major * _MAJOR + self.minor * _MINOR

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.major}.{self.minor}"


KNOWN = (*(Version(2, minor) for minor in range(7, 17)), Version(3, 0), Version(3, 1))
"""The versions that are read and written, the oldest first."""
OLDEST, NEWEST = KNOWN[0], KNOWN[-1]


def known_version(text: str) -> Version:
    """Return the version that somebody wrote, as ``2.16``.

    Raises
    ------
    BadInput
        If it is none that is known.
    """
    for one in KNOWN:
        if str(one) == text.strip():
            return one
    names = ", ".join(map(str, KNOWN))
    raise BadInput(f"'{text}' is no version of config.data: there is {names}")


def version_of(document: Document) -> Version:
    """Return a document's version.

    Raises
    ------
    BadInput
        If it is none that is known.
    """
    number = document.get("version")
    for one in KNOWN:
        if type(number) is int and number - number % _MINOR == one.number:
            return one
    raise BadInput(
        f"the configuration says that its version is {number!r}; known are those from "
        f"{OLDEST.number} (Ganeti {OLDEST}) to {NEWEST.number} ({NEWEST})"
    )


# --- what every later step counts on --------------------------------------------------

Name = Annotated[str, Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class _Disk(Struct):
    dev_type: Name
    logical_id: list[Any]
    size: int
    children: list["_Disk"] = []


class _Nic(Struct):
    mac: str


class _Instance(Struct):
    name: Name
    primary_node: Name
    disks: list[_Disk | Name] = []
    nics: list[_Nic] = []
    hvparams: dict[str, Any] = {}


class _Named(Struct):
    name: Name
    uuid: Name


class _Cluster(Struct):
    cluster_name: Name
    master_node: Name
    hvparams: dict[str, dict[str, Any]] = {}
    diskparams: dict[str, dict[str, Any]] = {}
    ndparams: dict[str, Any] = {}
    ipolicy: dict[str, Any] = {}


class _Group(_Named):
    diskparams: dict[str, dict[str, Any]] = {}
    ndparams: dict[str, Any] = {}
    ipolicy: dict[str, Any] = {}


class _Shape(Struct):
    cluster: _Cluster
    nodes: dict[str, _Named]
    nodegroups: dict[str, _Group]
    instances: dict[str, _Instance]
    serial_no: _Count | None = None
    networks: dict[str, _Named] = {}
    disks: dict[str, _Disk] = {}


def read(data: bytes) -> Document:
    """Return the document in a file.

    Raises
    ------
    BadInput
        If it is none of Ganeti's, of a version that is not known, or not of the shape
        that all versions have.
    """
    try:
        found = json.decode(data)
    except (DecodeError, UnicodeError) as error:
        raise BadInput(f"it is no JSON: {error}") from None
    except RecursionError:
        raise BadInput("it is no configuration: it is nested too deep") from None
    if not isinstance(found, dict):
        raise BadInput("it is no configuration of Ganeti: it is not a JSON object")
    if _is_too_deep(found):
        raise BadInput("it is no configuration: it is nested too deep")
    try:
        loads(data, object_pairs_hook=_once)
    except ValueError as error:
        raise BadInput(f"it is no JSON: {error}") from None
    version_of(found)
    check_shape(found)
    return found


def _once(pairs: list[tuple[str, Any]]) -> Part:
    """Return an object of JSON; raise `BadInput` for one that says a key twice.

    Readers differ in which of them counts: Ganeti's may have taken the other one.
    """
    found: Part = {}
    for key, value in pairs:
        if key in found:
            of = next((str(one) for name, one in pairs if name in ("name", "uuid")), "")
            where = f"of {of[:80]!r}" if of else "of one object"
            raise BadInput(f"it says the key {key[:80]!r} {where} twice")
        found[key] = value
    return found


def _is_too_deep(document: Document) -> bool:
    level: list[Any] = [document]
    for _ in range(_DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for part in inner for one in part if isinstance(one, dict | list)]
    return bool(level)


def check_shape(document: Document) -> None:
    """Raise `BadInput` if objects are missing, or are not of the type that all have."""
    try:
        convert(document, _Shape)
    except ValidationError as error:
        raise BadInput(f"it is no configuration of Ganeti: {misfit(error)}") from None


def all_disks(document: Document) -> Iterator[Part]:
    """Yield every disk, wherever it is, and its children behind it."""
    for instance in document["instances"].values():
        for disk in instance.get("disks", ()):
            if isinstance(disk, dict):
                yield from family(disk)
    for disk in document.get("disks", {}).values():
        yield from family(disk)


def family(disk: Part) -> Iterator[Part]:
    """Yield a disk, and its children behind it."""
    yield disk
    for child in disk.get("children") or ():
        yield from family(child)


def all_hvparams(document: Document) -> Iterator[tuple[str, Part]]:
    """Yield the parameters of hypervisors, each with its hypervisor's name."""
    cluster = document["cluster"]
    yield from (cluster.get("hvparams") or {}).items()
    for by_hypervisor in (cluster.get("os_hvp") or {}).values():
        yield from by_hypervisor.items()
    for instance in document["instances"].values():
        yield str(instance.get("hypervisor", "")), instance.get("hvparams") or {}


def holders(document: Document) -> Iterator[Part]:
    """Yield the cluster, and each node group: what has policies and parameters."""
    yield document["cluster"]
    yield from document["nodegroups"].values()


def all_ndparams(document: Document) -> Iterator[Part]:
    """Yield the node parameters of the cluster, of its groups and of its nodes."""
    for one in (*holders(document), *document["nodes"].values()):
        yield one.get("ndparams") or {}
