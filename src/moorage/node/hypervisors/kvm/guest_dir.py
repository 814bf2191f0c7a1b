# SPDX-License-Identifier: BSD-2-Clause
"""The directory of a guest: what an agent needs to find the guest again.

A lock on the directory says whether the guest has a process. Whoever starts a guest
takes the lock, and QEMU inherits it for life: it falls at the moment when the last
process of the guest is gone, however that came to be. A QEMU that its guest has taken
over may let go of it sooner, so the process is looked at, too.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, ValidationError, json

from moorage.node.hypervisors.base import GuestSpec
from moorage.node.machine.proc import START, living
from moorage.units import Mib

_SPEC = "spec.json"
ADOPTED = "adopted"
"""Is there for a guest whose process another program started."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
NOTE = f"echo $$ $(cut -d' ' -f{START + 3} /proc/$$/stat) $(cat {_BOOT}) >pid"
"""What a shell does in the directory before it becomes QEMU."""
SOCKETS = ("monitor", "console", "channel")
GUEST_AGENT = "agent"
"""The socket of QEMU's guest agent, in guests that have a port for one."""


class Home:
    """A guest's directory below the run directory.

    Files: ``spec.json``; ``pid``; the sockets ``monitor``, ``console``, ``channel``,
    and ``agent`` where the guest has a port for QEMU's; what the TLS of its migration
    needs; the logs ``log`` (QEMU's) and ``consolelog``.
    QEMU works in it, and may read what is shared with its group, and write nothing.
    """

    def __init__(self, run_dir: Path, uuid: str) -> None:
        self.path = run_dir / uuid
        self.uuid = uuid

    def file(self, name: str) -> Path:
        """Return the path of a file of the guest."""
        return self.path / name

    def claim(self) -> int | None:
        """Return a descriptor that holds the lock; None if the guest has a process.

        The directory is made if it is not there.
        """
        while True:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue  # somebody removed it meanwhile
            if not _locked(directory):
                return None
            if self._lives():
                os.close(directory)
                return None
            if self._is_mine(directory):
                return directory
            os.close(directory)

    def _is_mine(self, directory: int) -> bool:
        try:
            return os.path.samestat(os.fstat(directory), self.path.stat())
        except FileNotFoundError:
            return False

    def _lives(self) -> bool:
        """Whether the process that noted itself is still there, lock or no lock."""
        noted = self.read("pid").split()
        return len(noted) > 1 and noted == _birth(noted[0])

    def has_process(self) -> bool:
        """Whether the guest has a process; if not, its directory is removed."""
        if not self.path.is_dir():
            return False
        held = self.claim()
        if held is not None:
            self.remove(held)
        return held is None

    def remove(self, held: int) -> None:
        """Remove the directory, and give back the lock.

        What QEMU said before it ended stays beside the directory, as ``UUID.log``.
        """
        if self.is_guest() and self.file("log").exists():
            self.file("log").replace(self.last_words)
        self.empty()
        with suppress(OSError):  # a directory that is not a guest's stays
            self.path.rmdir()
        os.close(held)

    @property
    def last_words(self) -> Path:
        """What QEMU said before it ended."""
        return self.path.with_suffix(".log")

    def empty(self) -> None:
        """Remove every file of the guest; the lock must be held."""
        if self.is_guest():
            for file in self.path.iterdir():
                file.unlink()

    def is_guest(self) -> bool:
        """Whether the directory is one that a guest was started in."""
        return self.file(_SPEC).exists()

    def is_adopted(self) -> bool:
        """Whether another program started its process."""
        return self.file(ADOPTED).exists()

    def note(self, pid: int) -> None:
        """Note which process the guest is, as one does that is started here."""
        self.write("pid", " ".join(_birth(str(pid))))

    def pid(self) -> int | None:
        """Return the process id of QEMU; None while it has not come up."""
        words = self.read("pid").split()
        return int(words[0]) if words and words[0].isdigit() else None

    def read(self, name: str) -> str:
        """Return the text of a file; empty if there is none."""
        try:
            return self.file(name).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def write(self, name: str, text: str, *, shared: bool = False) -> None:
        """Write a file, whole or not at all.

        Parameters
        ----------
        shared
            Whether the guest's QEMU may read it.
        """
        scratch = self.file(f"{name}.part")
        scratch.unlink(missing_ok=True)
        scratch.touch(mode=0o600)
        scratch.write_text(text)
        if shared:
            os.chown(scratch, -1, self.path.stat().st_gid)
            scratch.chmod(0o640)
        scratch.rename(self.file(name))

    def share(self, group: int) -> None:
        """Let a group find shared files in the directory."""
        os.chown(self.path, -1, group)
        self.path.chmod(0o710)

    def log(self, name: str) -> int:
        """Return a descriptor that appends to a log."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.file(name), flags, 0o600)

    def write_spec(self, spec: GuestSpec) -> None:
        """Keep what the guest was started with."""
        self.write(_SPEC, json.encode(spec).decode())

    def spec(self) -> GuestSpec:
        """Return what the guest was started with, or a bare one if that is lost."""
        try:
            return json.decode(self.read(_SPEC), type=GuestSpec)
        except (DecodeError, ValidationError):
            return GuestSpec(uuid=self.uuid, name=self.uuid, memory=Mib(0))


def homes(run_dir: Path) -> list[Home]:
    """Return the directories of a run directory's guests."""
    if not run_dir.is_dir():
        return []
    names = sorted(path.name for path in run_dir.iterdir())
    return [one for one in (Home(run_dir, name) for name in names) if one.is_guest()]


def _birth(pid: str) -> list[str]:
    """Return the process id, when it was given, and in which run of the machine.

    Nothing if the process is not there, or only waits to be buried.
    """
    words = living(pid)
    return [pid, words[START], _BOOT.read_text().strip()] if words else []


def _locked(directory: int) -> bool:
    """Lock an open directory; one that is locked already is closed."""
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(directory)
        return False
    return True
