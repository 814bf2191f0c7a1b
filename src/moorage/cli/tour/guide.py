# SPDX-License-Identifier: BSD-2-Clause
"""The guide: leads through the steps, with the time and the proof of each."""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from moorage.daemons import devcluster as scratches
from moorage.errors import MoorageError
from moorage.testing.guest_image import prepare, usual_place

from .claims import BrokenClaim
from .stage import Stage
from .steps import STEPS
from .typist import Typist


def run(root: Path, *, simulated: bool) -> int:
    """Lead the tour in a new scratch cluster, which stays up; return the exit status.

    Parameters
    ----------
    simulated
        On simulated nodes: no root, no QEMU.
    """
    began = time.monotonic()
    guest = "" if simulated else prepared_guest()
    hypervisor = "sim" if simulated else "kvm"
    scratch = scratches.up(root, nodes=3, hypervisor=hypervisor, guest=guest, bare=True)
    stage = Stage(scratch, Typist(scratch.environment()))
    for number, step in enumerate(STEPS, start=1):
        title = (step.__doc__ or "").splitlines()[0].rstrip(".")
        _print(f"\n{number:3}. {title}")
        at = time.monotonic()
        try:
            proof = step(stage)
        except (BrokenClaim, MoorageError) as broken:
            _print(f"     FAILED: {broken}")
            _print(f"     The cluster is left as it is in {scratch.root}.")
            return 1
        _print(f"     -> {proof}  [{time.monotonic() - at:.1f} s]")
    _print(f"\nAll {len(STEPS)} steps hold, in {time.monotonic() - began:.0f} s.")
    told = f"{program()} env {shlex.quote(str(root))}"
    _print(f'The cluster stays up; use it with:  eval "$({told})"')
    return 0


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
