# SPDX-License-Identifier: BSD-2-Clause
"""The scripts of the OS definition ``image``: create, rename and verify."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import json

from moorage.errors import BadInput, MoorageError
from moorage.model.uidpool import UidPool

from . import catalogue, keeping, seed, writing

_CATALOGUE = "variants"
"""Beside the scripts, which start where they lie; packages lay a link there."""


def create(env: seed.Environment) -> None:
    """Put a system on the first disk, and beside it what it is to be."""
    found = seed.files(env)
    data = seed.file_system(found)  # before anything is written: it may be refused
    source = _source(env)
    cache = Path(env["OS_CACHE"])
    descriptor, size = disk = writing.whole_disk(_disk(env))
    writing.say(f"image: {source.image}")
    with keeping.opened(source, cache, _progress(env)) as image:
        pool = json.decode(env["OS_UID_POOL"], type=UidPool)
        written = writing.install(
            image.fileno(), source.format, disk, pool, cache / "apart"
        )
        if told := asyncio.run(written):
            writing.say(f"image: {told}")
    writing.put_seed(descriptor, size, data)
    writing.say(f"image: cloud-init is told {', '.join(found)}")


def rename(env: seed.Environment) -> None:
    """Let cloud-init know another name."""
    data = seed.file_system(seed.files(env))
    descriptor, size = writing.whole_disk(_disk(env))
    writing.put_seed(descriptor, size, data)


def verify(env: seed.Environment) -> None:
    """Look at the parameters, and at what the node has; nothing is fetched."""
    seed.check(env)
    seed.check_tools()
    source = _source(env)
    if not source.remote:
        if not Path(source.image).exists():
            raise BadInput(f"there is no image {source.image} on this node")
        keeping.local(source.image).close()


def _source(env: seed.Environment) -> catalogue.Source:
    name = env.get("OS_VARIANT", "")
    if not name:
        raise BadInput("no image is named: image+NAME", hint="gnt-os list")
    return catalogue.read(Path(_CATALOGUE).resolve(), name)


def _disk(env: seed.Environment) -> str:
    if env.get("DISK_COUNT", "0") == "0":
        raise BadInput(f"instance {env['INSTANCE_NAME']} has no disk")
    path = env.get("DISK_0_PATH", "")
    if not path:
        raise BadInput("the first disk has no device on this node, nor FUSE for one")
    if env.get("DISK_0_ACCESS") == "ro":
        raise BadInput("the first disk is read only: nothing is written to it")
    return path


def _progress(env: seed.Environment) -> keeping.Told:
    path = env.get("OS_PROGRESS", "")

    def told(done: int, total: int) -> None:
        if path and total:
            with Path(path).open("a") as file:
                file.write(f"{done >> 20} {total >> 20} MiB\n")

    return told


_ACTIONS: dict[str, Callable[[seed.Environment], None]] = {
    "create": create,
    "rename": rename,
    "verify": verify,
}


def main() -> None:
    """Do what the script is for; a sentence says what is wrong."""
    try:
        _ACTIONS[sys.argv[1]](os.environ)
    except MoorageError as error:
        hint = f" ({error.hint})" if error.hint else ""
        writing.say(f"image: {error.message}{hint}")
        sys.exit(1)


if __name__ == "__main__":
    main()
