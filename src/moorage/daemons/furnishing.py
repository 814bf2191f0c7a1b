# SPDX-License-Identifier: BSD-2-Clause
"""What a scratch cluster finds in its directory: storage, providers, OS definitions."""

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from moorage import durable
from moorage.node.extensions.examples import share


def furnish(root: Path, guest: str) -> None:
    """Make the shared directories, the providers and the OS definitions.

    Parameters
    ----------
    guest
        Directory of the tiny guest's image; empty without one.
    """
    for name in ("shared", "shared/qsd", "shared/loop", "local", "san"):
        (root / name).mkdir(mode=0o700)
    listed = "".join(f"{root}/{name}\n" for name in ("shared", "local"))
    durable.write(root / "file-storage-paths", listed.encode())
    for provider in ("qsd", "loop"):
        settings = {
            "IMAGE_DIR": f"{root}/shared/{provider}",
            "RUN_DIR": f"{root}/run-{provider}",
            "DIRECT_IO": _direct(root),
        }
        add_provider(root, provider, settings)
    _copy(share() / "os", root / "os")
    image = Path(guest) / "image.raw"
    if guest and image.exists():
        # Not a link: where the image is, others than us may write.
        copy = root / "os" / "tiny" / "image.raw"
        shutil.copyfile(image, copy)
        copy.chmod(0o600)


def add_provider(root: Path, name: str, settings: Mapping[str, str]) -> None:
    """Let the nodes of a scratch cluster have one of the providers that come along."""
    target = root / "extstorage" / name
    _copy(share() / "extstorage" / name, target)
    lines = [f"{key}={shlex.quote(value)}" for key, value in settings.items()]
    text = "\n".join(["# Written for a scratch cluster.", *lines, ""])
    (target / "etc" / "settings.sh").write_text(text)


def _copy(source: Path, target: Path) -> None:
    """Copy scripts; nobody else may write to the copies, whatever the mask was."""
    shutil.copytree(source, target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o022)


def _direct(directory: Path) -> str:
    """Return ``on`` where the file system can go around its cache."""
    probe = directory / ".direct"
    probe.touch()
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return "off"
    finally:
        probe.unlink()
    return "on"
