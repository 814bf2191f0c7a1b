# SPDX-License-Identifier: BSD-2-Clause
"""Machines: whole Debian systems beside each other, each with its systemd.

A machine is a layer over one Debian file system, with namespaces of its own for
processes, mounts, network, host name and cgroups. Its systemd is its process 1: units
are started, watched and restarted by what will do so on a real machine. All machines
share this machine's kernel, and a switch that leads nowhere else.

Root is needed, overlayfs, and cgroup v2.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from moorage.errors import CommandFailed, NotSupported
from moorage.testing.foreign import until

_BOOT = r"""
set -eu
root=$1; name=$2; base=$3; shift 3
mount --make-rprivate /
cd "$root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=upper,workdir=work" top
cd top
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
cat /proc/sys/kernel/random/uuid > run/boot_id
mount --bind run/boot_id proc/sys/kernel/random/boot_id
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm dev/net
for device in null zero full random urandom tty net/tun kvm fuse loop-control; do
    [ -e "/dev/$device" ] || continue
    : > "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t tmpfs -o mode=1777 tmpfs dev/shm
for shared; do
    mkdir -p ".${shared#*=}"
    mount --bind "${shared%%=*}" ".${shared#*=}"
done
hostname "$name"
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
exec env -i container=machine PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --log-target=journal
"""
"""What makes the machine's file system, in its namespaces, and becomes its systemd."""

_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Switch:
    """A bridge that the machines' cards are plugged into, in a namespace of its own."""

    _holder: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> Self:
        """Make it."""
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--kill-child", "sleep", "infinity"]
        )
        here = Path("/proc/self/ns/net").readlink()
        there = Path(f"/proc/{self.pid}/ns/net")
        until(lambda: there.readlink() != here, "there is no switch")
        self._ip("link", "add", "switch", "type", "bridge")
        self._ip("link", "set", "switch", "up")
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._holder.kill()
        self._holder.wait()

    @property
    def pid(self) -> int:
        """Whose network namespace it is in."""
        return self._holder.pid

    def plug(self, name: str, pid: int) -> None:
        """Give the network namespace of a process a card ``eth0``, plugged in here."""
        # The card of before goes with its namespace, which may still be going.
        self._ip("link", "delete", name, check=False)
        peer = ("peer", "name", "eth0", "netns", str(pid))
        self._ip("link", "add", name, "type", "veth", *peer)
        self._ip("link", "set", name, "master", "switch", "up")

    def _ip(self, *words: str, check: bool = True) -> None:
        within = ["nsenter", "--target", str(self.pid), "--net"]
        subprocess.run([*within, "ip", *words], check=check, stderr=subprocess.DEVNULL)


@dataclass
class Machine:
    """A Debian system.

    Attributes
    ----------
    root
        Directory of its own files; nothing but this machine uses it.
    base
        The file system that it starts from; it changes nothing there.
    shared
        Directories of this machine by where they are seen there: a file server's.
    """

    name: str
    root: Path
    base: Path
    switch: Switch
    shared: Mapping[Path, str] = field(default_factory=dict)
    _unshare: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        """Turn it on; it is up when systemd has started what is wanted.

        Raises
        ------
        Failed
            If it does not come up in time.
        """
        for part in ("upper", "work", "top"):
            (self.root / part).mkdir(parents=True, exist_ok=True)
        etc = self.root / "upper" / "etc"
        etc.mkdir(exist_ok=True)
        (etc / "hostname").write_text(f"{self.name}\n")
        binds = [f"{here}={there}" for here, there in self.shared.items()]
        argv = ["unshare", *_NAMESPACES, "--fork", "--kill-child", "--propagation"]
        argv += ["private", "bash", "-c", _BOOT, "boot", str(self.root), self.name]
        enter = ["bash", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"']
        with (self.root / "console").open("ab") as console:
            self._unshare = subprocess.Popen(
                [*enter, str(self._cgroup()), *argv, str(self.base), *binds],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(lambda: self.pid is not None, f"{self.name} does not boot")
        self.switch.plug(self.name, self.pid or 0)
        until(self._is_up, f"{self.name} does not come up")

    def _cgroup(self) -> Path:
        """Return a cgroup for the machine; systemd takes it for the whole."""
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if " - cgroup2 " in line:
                name = f"machine-{os.getpid()}-{self.name}"
                found = Path(line.split()[4]) / name
                found.mkdir(exist_ok=True)
                return found
        raise NotSupported("a machine needs cgroup v2, and none is mounted here")

    @property
    def pid(self) -> int | None:
        """Its process 1; None while it is off."""
        if self._unshare is None or self._unshare.poll() is not None:
            return None
        parent = self._unshare.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return int(children[0]) if children else None

    def _is_up(self) -> bool:
        said = self.run("systemctl is-system-running", check=False).strip()
        return said in ("running", "degraded")

    def run(self, command: str, *, seconds: float = 300.0, check: bool = True) -> str:
        """Run a line of bash on it, as root; return what it says, errors included.

        Raises
        ------
        CommandFailed
            If it ends with another status than 0, and that is to be checked.
        """
        enter = ["nsenter", "--target", str(self.pid), "--all"]
        done = subprocess.run(
            [*enter, "env", "-i", f"PATH={_PATH}", "HOME=/root", "LC_ALL=C.UTF-8",
             "bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )  # fmt: skip
        if check and done.returncode:
            raise CommandFailed(
                f"{self.name}: '{command}' ended with {done.returncode}:\n{done.stdout}"
            )
        return done.stdout

    def bring(self, directory: Path, to: str) -> None:
        """Copy the files of a directory into a new one there."""
        shutil.copytree(directory, Path(f"/proc/{self.pid}/root{to}"))

    def wait(self, command: str, seconds: float = 120.0) -> None:
        """Wait until a line of bash ends well."""

        def does() -> bool:
            said = self.run(f"{{ {command}; }} && echo yes", check=False)
            return said.endswith("yes\n")

        until(does, f"{self.name}: '{command}' does not end well", seconds)

    def reboot(self) -> None:
        """Let it shut down as it should, and turn it on again."""
        self.run("systemctl reboot", check=False)
        until(lambda: self.pid is None, f"{self.name} does not shut down")
        self._forget()
        self.boot()

    def pull_plug(self) -> None:
        """End everything on it at once; what it wrote is what the kernel has."""
        if self._unshare and self._unshare.poll() is None:
            self._unshare.kill()  # process 1 goes with it, and all else with that
        self._forget()

    def _forget(self) -> None:
        if self._unshare:
            self._unshare.wait()
        self._unshare = None

    def remove(self) -> None:
        """Turn it off, and remove its files."""
        self.pull_plug()
        groups = self._cgroup()
        until(lambda: _empty(groups), f"processes of {self.name} are left")
        for path in [*sorted(groups.rglob("*/"), reverse=True), groups]:
            path.rmdir()
        shutil.rmtree(self.root)


def _empty(group: Path) -> bool:
    return "populated 0" in (group / "cgroup.events").read_text()
