# SPDX-License-Identifier: BSD-2-Clause
"""A machine that QEMU emulates, and whose power can be cut at any moment.

Its system is an image that nobody writes to. What the node keeps is on a disk of its
own, below ``/node``. When QEMU is killed, the machine's memory is gone, and with it
what its kernel had not written to that disk; what was synced is in the image file. The
file system is mounted so that it writes late, and makes up for no missing sync.
"""

import asyncio
import gzip
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from moorage.node.hypervisors.kvm import cpio
from moorage.testing.foreign import run, until
from moorage.testing.guest import Guest
from moorage.testing.guest_image import build as build_guest
from moorage.testing.guest_image.build import _busybox
from moorage.testing.guest_image.kernel import fetch_kernel
from moorage.testing.guest_image.modules import depends, load_order, modules_in
from moorage.testing.guest_image.system import ARGUMENTS, CHANNEL

HERE = Path(__file__).parent
HOME = HERE.parents[1]
GUEST = HOME / ".build" / "guest"
NODE = "/node"
"""Where its own disk is."""
PROGRAMS = ("sh", "sleep", "shuf", "date", "mv", "rm", "cat", "ip", "stat", "env")
PROGRAMS += ("truncate", "fallocate", "dd", "sync", "mkdir", "chmod", "test", "setsid")
PROGRAMS += ("ls", "ln", "readlink", "touch", "grep", "cp", "rmdir", "qemu-img")
LIBRARIES = (
    *("moorage", "aiohappyeyeballs", "aiohttp", "aiosignal", "attr", "attrs", "cffi"),
    *("cryptography", "frozenlist", "idna", "markdown_it", "mdurl", "msgspec", "qemu"),
    *("multidict", "propcache", "pycparser", "pygments", "rich", "rpds", "yarl"),
)
_MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "virtio_net", "virtio_rng")
_MODULES += ("crc32c_generic", "ext4")
_FIRST = r"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
while read -r m; do insmod "/m/$m.ko"; done < /m/order
while [ ! -e /dev/vdb ]; do sleep 0.05; done
mount -t ext4 -o ro /dev/vda /root
mount -t ext4 -o commit=60,noauto_da_alloc /dev/vdb /root/node
mount --move /dev /root/dev
mount --move /proc /root/proc
mount --move /sys /root/sys
exec switch_root /root /sbin/start
"""
_SECOND = r"""#!/bin/busybox sh
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp LC_ALL=C.UTF-8
for d in /tmp /run /var; do mount -t tmpfs tmpfs $d; done
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
hostname "$node"
ip link set lo up
ip link set eth0 up
ip addr add "$address" dev eth0
while :; do sh /sbin/channel; sleep 0.2; done </dev/null >/dev/null 2>&1
"""


def build(directory: Path) -> None:
    """Write the machine's kernel, its first programs and its system, if not there.

    What changes in the project's source is there at the next call.
    """
    build_guest(GUEST)
    directory.mkdir(parents=True, exist_ok=True)
    root = fetch_kernel(GUEST)
    shutil.copyfile(GUEST / "vmlinuz", directory / "vmlinuz")
    (directory / "initrd.gz").write_bytes(_initrd(root))
    _system(directory)


def _initrd(root: Path) -> bytes:
    files, code = modules_in(root), {}

    def needs(name: str) -> list[str] | None:
        if name not in files:
            return None
        code[name] = files[name].read_bytes()
        return depends(code[name])

    order = load_order(_MODULES, needs)
    entries = [
        *map(cpio.directory, ("bin", "dev", "m")),
        cpio.console(),
        cpio.program("bin/busybox", _busybox()),
        cpio.program("init", _FIRST.encode()),
        cpio.plain("m/order", "".join(f"{one}\n" for one in order).encode()),
        *(cpio.plain(f"m/{name}.ko", code[name]) for name in order),
    ]
    return gzip.compress(cpio.archive(entries), 6, mtime=0)


def _system(directory: Path) -> None:
    """Write the image of the machine's system: Python, the product, some programs."""
    tree, image = directory / "tree", directory / "system.part"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("proc", "sys", "dev", "tmp", "run", "var", "node", "etc"):
        (tree / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    for path in dict.fromkeys(_needed()):
        _put(tree, path)
    (tree / "bin" / "busybox").write_bytes(_busybox())
    (tree / "bin" / "busybox").chmod(0o755)
    for name, text in {"sbin/start": _SECOND, "sbin/channel": CHANNEL}.items():
        (tree / name).write_text(text)
        (tree / name).chmod(0o755)
    names = ["base64", "hostname", "mount", "poweroff", "ps", "kill", "find", "head"]
    for name in [*names, "tr", "cut", "sed", "awk", "sha256sum", "tail", "umount"]:
        (tree / "sbin" / name).symlink_to("/bin/busybox")
    (tree / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (tree / "etc" / "group").write_text("root:x:0:\n")
    image.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(image), "600m")
    image.replace(directory / "system")
    shutil.rmtree(tree)


def _needed() -> Iterator[Path]:
    """Yield the files and directories of this machine that one of those needs."""
    python = Path(sys.executable)
    standard = Path(os.__file__).parent
    packages = Path(sysconfig.get_path("purelib"))
    found = [path for path in packages.iterdir() if _runs(path.name)]
    yield from (python.parent, python.parents[1] / "pyvenv.cfg", standard)
    yield from (*found, HOME / "src", HOME / "share", HOME / "pyproject.toml")
    yield from HERE.glob("inside_*.py")
    binaries = [python.resolve()]
    while python.is_symlink():
        python = python.parent / python.readlink()
        yield python
    binaries += [Path(one).resolve() for one in map(shutil.which, PROGRAMS) if one]
    for top in (standard, *found, HOME / "src"):
        binaries += top.rglob("*.so*") if top.is_dir() else []
    yield from (Path(one) for one in map(shutil.which, PROGRAMS) if one)
    yield from binaries
    yield from _libraries(binaries)


def _runs(name: str) -> bool:
    stem = name.partition(".")[0].partition("-")[0].lower()
    odd = "editable" in name or name.startswith("_cffi")
    return odd or stem in LIBRARIES or stem in ("typing_extensions", "rpds_py")


def _libraries(binaries: Iterable[Path]) -> Iterator[Path]:
    done = subprocess.run(
        ["ldd", *map(str, binaries)], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        for word in line.split():
            if word.startswith("/") and not word.endswith(":"):
                yield Path(word)


def _put(tree: Path, path: Path) -> None:
    """Copy a file, or all of a directory, to its own place in a tree."""
    to = tree / str(path).lstrip("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        ignore = shutil.ignore_patterns(
            "test", "lib2to3", "tests", "ensurepip", "idlelib", ".git"
        )
        shutil.copytree(path, to, symlinks=True, ignore=ignore, dirs_exist_ok=True)
    elif not to.exists() and path.exists():
        to.unlink(missing_ok=True)  # a link that leads nowhere
        shutil.copy2(path, to)


class Machine:
    """One such machine.

    Parameters
    ----------
    directory
        Has what :func:`build` wrote.
    home
        Its own directory: the disk, sockets, its console.
    tap
        The card on this machine that it is connected with.

    Attributes
    ----------
    boots
        How often it was switched on.
    """

    def __init__(
        self, directory: Path, home: Path, tap: str, name: str, address: str
    ) -> None:
        self.name = name
        self.address = address
        self.boots = 0
        self._directory = directory
        self._home = home
        self._tap = tap
        self._running: subprocess.Popen[bytes] | None = None
        home.mkdir()
        (home / "agent").mkdir()
        empty = home / "empty"
        empty.mkdir()
        options = ("-q", "-t", "ext4", "-O", "has_journal")
        run("mke2fs", *options, "-d", str(empty), str(home / "disk"), "256m")

    @property
    def channel(self) -> Path:
        return self._home / "channel"

    def boot(self) -> None:
        """Switch it on, and wait until it answers."""
        self.boots += 1
        self.channel.unlink(missing_ok=True)
        with (self._home / "console").open("ab") as console:
            self._running = subprocess.Popen(
                self._words(),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        until(self.channel.exists, f"{self.name} does not start")
        self.run("true", 600.0)

    def _words(self) -> list[str]:
        at = self._directory
        number = int(self.address.rpartition(".")[2])
        drive = "if=virtio,format=raw,cache=writeback,file"
        append = f"{ARGUMENTS} node={self.name} address={self.address}/24 ro"
        return [
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=256"),
            *("-cpu", "max", "-m", "1024", "-nodefaults", "-no-user-config"),
            *("-display", "none", "-serial", "stdio", "-no-reboot"),
            *("-kernel", f"{at / 'vmlinuz'}", "-initrd", f"{at / 'initrd.gz'}"),
            *("-append", append),
            *("-drive", f"{drive}={at / 'system'},readonly=on"),
            *("-drive", f"{drive}={self._home / 'disk'}"),
            *("-netdev", f"tap,id=n,ifname={self._tap},script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=n,mac=52:54:00:77:00:{number:02x}"),
            *("-device", "virtio-serial-pci", "-device", "virtio-rng-pci"),
            *("-chardev", f"socket,id=c,path={self.channel},server=on,wait=off"),
            *("-device", "virtserialport,chardev=c,name=channel"),
        ]

    def run(self, command: str, timeout: float = 300.0) -> str:
        """Run a shell command in it; return what it printed.

        Raises
        ------
        CommandFailed
            If its exit status is not 0.
        """

        async def ask() -> str:
            async with Guest(self.channel) as inside:
                return await inside.run(command, timeout)

        return asyncio.run(ask())

    def begin(self, log: str, *argv: str) -> None:
        """Start a program that goes on by itself; its output goes to a file."""
        self.run(f"cd {NODE}; setsid {shlex.join(argv)} </dev/null >>{log} 2>&1 &")

    def cut_power(self) -> None:
        """Kill it: what was not synced is gone."""
        if self._running:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
        self._running = None
