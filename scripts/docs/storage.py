# SPDX-License-Identifier: BSD-2-Clause
"""Parts of the reference: disk templates, and the scripts of providers."""

from collections.abc import Generator, Iterator, Sequence
from enum import Flag
from typing import Any

from declared import Lines, code, rest, table

from moorage.jobs.words import about
from moorage.model import Disk, Provider
from moorage.storage import TEMPLATES, Can, Site, Template
from moorage.storage.provider import OPTIONAL, SCRIPTS, SEARCH_PATH
from moorage.storage.templates.ext import Ext
from moorage.units import Mib


def templates() -> Lines:
    """Yield what every template declares about itself."""
    verbs = [one for one in Can if one]
    rows = [list(_capabilities(one, verbs)) for _, one in sorted(TEMPLATES.items())]
    head = ["template", "mirror", "reach", *(_word(one) for one in verbs), "provider"]
    yield from table(head, rows)
    for name, one in sorted(TEMPLATES.items()):
        yield f"- `{name}`: {about(one)}. {rest(one)}".rstrip()
    yield ""


def _capabilities(template: type[Template], verbs: Sequence[Can]) -> Iterator[str]:
    declared = template.capabilities
    yield code(template.name)
    yield str(declared.mirror)
    yield str(declared.reach)
    for verb in verbs:
        yield "yes" if verb in declared.can else "-"
    yield "yes" if declared.provider else "-"


def _word(flag: Flag) -> str:
    return (flag.name or "").lower()


VARIABLES = {
    "VOL_NAME": "the volume's name, `<uuid>.ext.disk<n>`; never changes",
    "VOL_UUID": "the disk's uuid",
    "VOL_CNAME": "the name that the disk was made with, whatever it is called now; a "
    "snapshot's is `VOL_SNAPSHOT_NAME`; absent when there was none",
    "VOL_SIZE": "size in MiB; for `grow`, the old one",
    "VOL_NEW_SIZE": "the size to grow to, in MiB",
    "VOL_METADATA": "a note of at most 128 plain characters: `originstname+<instance>`",
    "VOL_SNAPSHOT_NAME": "name of the volume to make",
    "VOL_SNAPSHOT_SIZE": "its size in MiB",
    "VOL_OPEN_EXCLUSIVE": "`True`: this node alone; `False`: another one too",
    "VOL_EPOCH": "number of the attachment; only rises. Not in Ganeti",
    "VOL_NODE": "name of the node where the script runs. Not in Ganeti",
    "VOL_POOL": "the storage pool that the disk is in, or whose room is asked for; "
    "absent if it is in none. Not in Ganeti",
    "EXTP_PROVIDER": "the provider's name",
    "EXTP_ACCESS": "`kernelspace` or `userspace`",
    "EXTP_POOL": "as `VOL_POOL`, unless the disk has a parameter `pool`",
    "EXTP_SPEED": "any parameter of the disk: `EXTP_` and its name in capitals",
}
SHOWN = {"EXTP_SPEED": "EXTP_<NAME>"}


def search_path() -> Lines:
    """Yield where providers are looked for."""
    yield from (f"{n}. `{path}`" for n, path in enumerate(SEARCH_PATH, 1))


def scripts() -> Lines:
    """Yield the scripts of a provider."""
    rows = [[code(one), "yes", what] for one, what in SCRIPTS.items()]
    rows += [[code(one), "no", what] for one, what in OPTIONAL.items()]
    yield from table(("script", "required", "what it is to do"), rows)


def variables() -> Lines:
    """Yield what each script sees, as the template hands it over."""
    seen = {verb: _seen(steps) for verb, steps in _probes().items()}
    every = frozenset().union(*seen.values())
    if every != VARIABLES.keys():
        raise KeyError(f"variables without a word here: {every ^ VARIABLES.keys()}")
    rows = [
        [
            code(SHOWN.get(name, name)),
            *("x" if name in found else "" for found in seen.values()),
            meaning,
        ]
        for name, meaning in VARIABLES.items()
    ]
    yield from table(["variable", *seen, "meaning"], rows)


def _probes() -> dict[str, Generator[Any, Any, Any]]:
    """Return the steps of every verb, on a disk that has all that a disk can have."""
    provider = Provider(name="san", path="/san", optional=tuple(OPTIONAL))
    site = Site(
        node="node1", params={"speed": "1"}, providers={"san": provider}, pool="fast"
    )
    ext = Ext(site)
    disk = Disk(
        uuid="u",
        name="data1",
        dev_type="ext",
        logical_id=("san", "volume"),
        size=Mib(1),
        params={"provider": "san", "speed": "1"},
    )
    return {
        "create": ext.create(disk),
        "attach": ext.attach(disk),
        "detach": ext.detach(disk),
        "remove": ext.remove(disk),
        "grow": ext.grow(disk, Mib(2)),
        "setinfo": ext.setinfo(disk, "note"),
        "verify": ext.verify(disk),
        "snapshot": ext.snapshot(disk, "copy", Mib(1)),
        "open": ext.open(disk, exclusive=True),
        "close": ext.close(disk),
        "list": ext.volumes(disk.params),
        "capacity": ext.capacity(provider),
    }


def _seen(steps: Generator[Any, Any, Any]) -> frozenset[str]:
    found = frozenset(next(steps).env)
    steps.close()
    return found
