# SPDX-License-Identifier: BSD-2-Clause
"""``moorage export-config``: the configuration as a file of Ganeti's."""

import os
from pathlib import Path

from msgspec import Struct, json

from moorage import __version__, durable
from moorage.config_data import NEWEST, Version, exported
from moorage.errors import BadInput, Exists, Failed
from moorage.model.master_address import MasterAddress
from moorage.store import inspect, loaded
from moorage.store.base import ADVICE

from . import master_process, process
from .paths import MasterPlaces

BESIDE = ".moorage"
"""What the name of the second file ends with."""


class Written(Struct, frozen=True):
    """What was written.

    Attributes
    ----------
    cluster
        The cluster's name.
    files
        The configuration, and the file beside it if there is one.
    left
        What Ganeti, at any version, has no place for: it is in the file beside.
    lost
        What this version of Ganeti cannot have.
    """

    cluster: str
    files: tuple[Path, ...]
    left: list[str]
    lost: list[str]


def export(
    places: MasterPlaces,
    target: Path,
    version: Version = NEWEST,
    address: MasterAddress | None = None,
) -> Written:
    """Write the configuration as Ganeti's, whether the master runs or not.

    Both files are root's alone: secrets of mirrored disks and of OS parameters are in
    them. Nothing is written unless the version can hold the cluster.

    Raises
    ------
    BadInput
        If it cannot, its directory is not there, or Ganeti's master has no address.
    Exists
        If there is a file of one of the names.
    Failed
        If the store is damaged.
    """
    master_process.check_cluster(places)
    beside = target.with_name(target.name + BESIDE)
    for one in (target, beside):
        if one.exists():
            raise Exists(f"there is a file {one} already", hint="name another one")
    if not target.parent.is_dir():
        raise BadInput(f"there is no directory {target.parent}")
    found = inspect(places.store, live=process.holder(places.lock) is not None)
    if found.faults:
        raise Failed(f"{places.store} is damaged: {found.faults[0]}", hint=ADVICE)
    config, _ = loaded(found.records)
    made = exported(config, version, address)
    written = [target]
    if any(made.beside.values()):
        # First, so that no file of Ganeti's is without what belongs to it.
        told = {"software": __version__, "cluster": config.cluster.uuid, **made.beside}
        _write(beside, json.format(json.encode(told)))
        written.append(beside)
    _write(target, json.format(json.encode(made.document)))
    return Written(config.cluster.cluster_name, tuple(written), made.left, made.lost)


def _write(target: Path, data: bytes) -> None:
    """Write a file that its owner alone can read, over none that came meanwhile."""
    draft = target.with_name(f".{target.name}.draft")
    durable.write(draft, data + b"\n")
    try:
        os.link(draft, target)
    except FileExistsError:
        raise Exists(f"there is a file {target} already") from None
    finally:
        durable.remove(draft)
