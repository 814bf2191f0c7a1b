# SPDX-License-Identifier: BSD-2-Clause
"""The guide: leads through the steps, with the time and the proof of each."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from moorage.daemons import devcloud as clouds
from moorage.daemons import devcluster as scratches
from moorage.errors import MoorageError
from moorage.testing.guest_image import prepare, usual_place

from .claims import BrokenClaim
from .cloud_stage import CloudStage
from .cloud_steps import CLOUD_STEPS
from .stage import Stage
from .steps import STEPS
from .typist import Typist

S = TypeVar("S")
Step = Callable[[S], str]


def run(root: Path, *, simulated: bool) -> int:
    """Lead the tour in a new scratch cluster, which stays up; return the exit status.

    Parameters
    ----------
    simulated
        On simulated nodes: no root, no QEMU.
    """
    guest = "" if simulated else prepared_guest()
    hypervisor = "sim" if simulated else "kvm"
    scratch = scratches.up(root, nodes=3, hypervisor=hypervisor, guest=guest, bare=True)
    stage = Stage(scratch, Typist(scratch.environment()))
    if not _lead(stage, STEPS, "cluster", scratch.root):
        return 1
    told = f"{program()} env {shlex.quote(str(root))}"
    _print(f'The cluster stays up; use it with:  eval "$({told})"')
    return 0


def run_cloud(root: Path, *, simulated: bool) -> int:
    """Lead the cloud's tour in a new scratch cloud, which stays up.

    Parameters
    ----------
    simulated
        With guests that are records: no root, no QEMU. Storage is real all the same.
    """
    guest = "" if simulated else prepared_guest()
    hypervisor = "fake" if simulated else "kvm"
    cloud = clouds.prepare(root, hypervisor=hypervisor, guest=guest)
    if not _lead(CloudStage(cloud), CLOUD_STEPS, "cloud", cloud.root):
        return 1
    told = f"{program()} env {shlex.quote(str(root))}"
    _print(f'The cloud stays up; use it with:  eval "$({told})"')
    _print("Then, for example:                 openstack volume create --size 1 more")
    _print("                                   openstack server add volume web-a more")
    return 0


def _lead(stage: S, steps: Sequence[Step[S]], what: str, root: str) -> bool:
    """Take the steps, as long as each one keeps its claim; return whether all did."""
    began = time.monotonic()
    for number, step in enumerate(steps, start=1):
        title = (step.__doc__ or "").splitlines()[0].rstrip(".")
        _print(f"\n{number:3}. {title}")
        at = time.monotonic()
        try:
            proof = step(stage)
        except (BrokenClaim, MoorageError) as broken:
            _print(f"     FAILED: {broken}")
            _print(f"     The {what} is left as it is in {root}.")
            return False
        _print(f"     -> {proof}  [{time.monotonic() - at:.1f} s]")
    _print(f"\nAll {len(steps)} steps hold, in {time.monotonic() - began:.0f} s.")
    return True


def program() -> str:
    """Return how to type ``moorage`` here: its path, unless a shell finds it."""
    if shutil.which("moorage"):
        return "moorage"
    return shlex.quote(str(Path(sys.executable).parent / "moorage"))


def prepared_guest() -> str:
    """Return the directory of the tiny guest, with its kernel and its disk image."""
    directory = usual_place(os.environ)
    prepare(directory)
    return str(directory)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
