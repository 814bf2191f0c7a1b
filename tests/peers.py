# SPDX-License-Identifier: BSD-2-Clause
"""Debian's packages of Ganeti, unpacked: nothing is installed, root is not needed."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ganeti_rapi import PLACE

BUILD = Path(__file__).parents[1] / ".build" / "peers"
PYTHON = "/usr/bin/python3"
SCRIPTS = "usr/share/ganeti/3.0"
PLANNERS = "usr/lib/ganeti/3.0/usr/bin"
GANETI = (
    *("ganeti-3.0", "ganeti-htools-3.0", "libnss-wrapper"),
    *("python3-bitarray", "python3-cffi-backend"),
    *("python3-cryptography", "python3-openssl", "python3-pycurl", "python3-pyinotify"),
    *("python3-pyparsing", "python3-simplejson"),
)
"""Ganeti's commands, RAPI daemon and planners, with what their Python imports."""
_USERS = ("root", "gnt-confd", "gnt-masterd", "gnt-metad", "gnt-rapi")
_GROUPS = (*_USERS, "gnt-admin", "gnt-daemons", "gnt-luxid")


def unpacked(packages: Sequence[str]) -> Path | None:
    """Return the directory of unpacked packages; None if they cannot be had."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return None
    BUILD.mkdir(parents=True, exist_ok=True)
    place = BUILD / "root"
    with (BUILD / "lock").open("w") as lock:  # other tests want some at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [one for one in packages if not (BUILD / one).exists()]
        return place if not missing or _unpack(missing, place) else None


def _unpack(packages: Sequence[str], place: Path) -> bool:
    fetched = subprocess.run(
        ["apt-get", "-qq", "download", *packages],
        cwd=BUILD,
        capture_output=True,
        check=False,
    )
    if fetched.returncode:
        sys.stderr.write(fetched.stderr.decode(errors="replace"))
        return False
    for name in packages:
        (package,) = BUILD.glob(f"{name}_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, place], check=True)
        package.rename(BUILD / name)
    return True


def ganetis_node(place: Path, directory: Path, master: Path) -> dict[str, str]:
    """Make a node's directories as Ganeti's programs look for them, around a socket.

    Parameters
    ----------
    place
        Where Ganeti is unpacked.
    directory
        Of the node; its name is the node's.
    master
        The socket that all ask.

    Returns
    -------
    dict
        The environment that its programs take to be run on that node.
    """
    var = directory / "var"
    for one in ("run/ganeti/socket", "log/ganeti", "lib/ganeti/rapi", "lock"):
        (var / one).mkdir(parents=True)
    for one in ("ganeti-query", "ganeti-master"):
        (var / "run/ganeti/socket" / one).symlink_to(master)
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{place}/{SCRIPTS}:{place}/{PLACE}",
        "GANETI_ROOTDIR": str(directory),
        "GANETI_HOSTNAME": directory.name,
        "TZ": "UTC",
    }


def as_ganetis_users(place: Path, directory: Path) -> dict[str, str]:
    """Return an environment in which Ganeti's users are there: whoever runs this is.

    Its daemons look for them. A library of Samba's answers for the real files.
    """
    (library,) = place.glob("usr/lib/*/libnss_wrapper.so")
    users, groups = directory / "passwd", directory / "group"
    uid, gid = os.geteuid(), os.getegid()
    users.write_text("".join(f"{one}:x:{uid}:{gid}::/:/bin/false\n" for one in _USERS))
    groups.write_text("".join(f"{one}:x:{gid}:\n" for one in _GROUPS))
    return {
        "LD_PRELOAD": str(library),
        "NSS_WRAPPER_PASSWD": str(users),
        "NSS_WRAPPER_GROUP": str(groups),
    }
