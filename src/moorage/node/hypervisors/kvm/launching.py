# SPDX-License-Identifier: BSD-2-Clause
"""A guest's first moments: one process for it, and a watch where KVM is unproven."""

import asyncio
import os
import shutil
from pathlib import Path

from moorage.errors import Failed
from moorage.model.hvparams import Parameters, parameters
from moorage.node.hypervisors.base import GuestSpec

from . import accelerator, lines, pinning, process, throttling, wakeup
from .accelerator import Accelerators
from .cables import Cables
from .commandline import arguments
from .guest_dir import Home
from .openings import Images
from .starting import Start, outfit

_CLAIMS, _CLAIM_PAUSE = 10, 0.02
_WATCH = 5.0
_VERDICTS = "accelerator.json"


class Launcher:
    """Starts guests' processes.

    Attributes
    ----------
    accelerators
        What is known of the node's accelerator.
    """

    def __init__(
        self, run_dir: Path, program: str, cables: Cables, images: Images | None
    ) -> None:
        self._run_dir = run_dir
        self._program = program
        self._cables = cables
        self._images = images
        self.accelerators = Accelerators(run_dir / _VERDICTS, program)

    async def launch(self, spec: GuestSpec, *, incoming: bool) -> bool:
        """Start a process for the guest; return False if it has one."""
        given = parameters(spec.hvparams)
        home = Home(self._run_dir, spec.uuid)
        while (held := await _claim(home)) is None:
            if await process.settled(home):
                return False  # else it was just ending: now there is room
        try:
            home.empty()
            home.last_words.unlink(missing_ok=True)
            home.write_spec(spec)
            await self._run(home, spec, given, held, incoming=incoming)
        finally:
            os.close(held)
            started = home.has_process()  # if not, nothing is left of it
        return started

    async def _run(
        self,
        home: Home,
        spec: GuestSpec,
        given: Parameters,
        held: int,
        *,
        incoming: bool,
    ) -> None:
        accel = await self._accelerator(given, spec.memory)
        if shutil.which(self._program) is None:
            raise Failed(
                f"{self._program} is missing", hint="apt-get install qemu-system-x86"
            )
        async with self._cables.to_start(home, spec, given) as taps:
            start = Start(accel, taps, incoming)
            with outfit(home, spec, given, self._images, start) as one:
                words = arguments(spec, given, one.launch)
                argv = [*one.user, self._program, *words]
                await process.launch(home, spec.name, argv, [held, *one.keep])
                try:
                    await lines.furnish(home, given, one.port)
                    await pinning.pin(home, given)
                    await throttling.start(home, spec.drives)
                except BaseException:
                    await process.end(home)
                    raise

    async def _accelerator(self, given: Parameters, memory: int) -> str:
        wanted = given.accelerator
        if wanted == "auto":
            wanted = (await self.accelerators.verdict(given.kernel_path)).name
        return wanted if wanted == "kvm" else accelerator.emulated(memory)

    async def watch(self, spec: GuestSpec) -> None:
        """Watch a first guest on a weak proof; start it again if KVM stopped it."""
        given = parameters(spec.hvparams)
        if given.accelerator != "auto":
            return
        verdict = await self.accelerators.verdict(given.kernel_path)
        if verdict.name != "kvm" or verdict.proof != "firmware":
            return
        home = Home(self._run_dir, spec.uuid)
        cause = await wakeup.stopped_within(home, _WATCH)
        self.accelerators.watched(given.kernel_path, cause)
        if cause:
            await process.end(home)
            await self.launch(spec, incoming=False)


async def _claim(home: Home) -> int | None:
    """Return the lock of a guest without a process; None if it has one.

    Whoever only looks holds the lock for a moment, hence more than one attempt.
    """
    for _ in range(_CLAIMS):
        held = home.claim()
        if held is not None or home.pid():
            return held
        await asyncio.sleep(_CLAIM_PAUSE)
    return None
