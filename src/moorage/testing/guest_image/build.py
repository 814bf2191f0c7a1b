# SPDX-License-Identifier: BSD-2-Clause
"""The builder: from packages to a kernel and an initramfs, or to a bootable disk."""

import fcntl
import gzip
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from moorage.errors import CommandFailed, NotFound
from moorage.node.hypervisors.kvm import cpio

from . import system
from .kernel import fetch_kernel, kernel_image
from .modules import WANTED, depends, load_order, modules_in

IMAGE_MIB = 32
"""Size of the bootable image; a disk that takes it must be at least as large."""

_BUILT = ("vmlinuz", "initrd.gz")
_BUSYBOX = (Path("/bin/busybox"), Path("/usr/bin/busybox"))
_SECTORS, _HEADS = 63, 16


def usual_place(environ: Mapping[str, str]) -> Path:
    """Return where the tiny guest is built unless somebody says otherwise.

    ``MOORAGE_GUEST`` names the directory. Else it is ``.build/guest`` of the checkout
    that this code runs from, or below the user's cache where it was installed.
    """
    given = environ.get("MOORAGE_GUEST")
    if given:
        return Path(given)
    checkout = Path(__file__).parents[4]
    if (checkout / "pyproject.toml").exists():
        return checkout / ".build" / "guest"
    cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', '/root')}/.cache"
    return Path(cache) / "moorage" / "guest"


def build(directory: Path) -> None:
    """Write ``vmlinuz`` and ``initrd.gz`` into `directory`, if not there.

    Raises
    ------
    NotFound
        If busybox is missing.
    CommandFailed
        If the kernel cannot be fetched.
    """
    with _alone(directory):
        _build(directory)


def prepare(directory: Path) -> None:
    """Build the tiny guest, and the disk image ``image.raw`` that boots it.

    What is there already is left as it is; several processes may ask for it at a time.

    Raises
    ------
    NotFound
        If busybox, ``mtools`` or ``syslinux`` is missing.
    CommandFailed
        If the kernel cannot be fetched, or a program fails.
    """
    with _alone(directory):
        _build(directory)
        if not (directory / "image.raw").exists():
            scratch = directory / "image.part"
            _image(scratch, directory, "tiny guest")
            scratch.rename(directory / "image.raw")


def _build(directory: Path) -> None:
    if not all((directory / name).exists() for name in _BUILT):
        root = fetch_kernel(directory)
        _write(directory / "initrd.gz", _initramfs(root))
        _write(directory / "vmlinuz", kernel_image(root).read_bytes())


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Let no two processes build in `directory` at a time; it is made."""
    directory.mkdir(parents=True, exist_ok=True)
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _write(path: Path, data: bytes) -> None:
    """Write all or nothing: a half-written file would be taken for a whole one."""
    scratch = path.with_suffix(".part")
    scratch.write_bytes(data)
    scratch.rename(path)


def _busybox() -> bytes:
    for path in _BUSYBOX:
        if path.exists():
            return path.read_bytes()
    raise NotFound("busybox is missing", hint="apt-get install busybox-static")


def _initramfs(root: Path) -> bytes:
    files = modules_in(root)
    code: dict[str, bytes] = {}

    def needs(name: str) -> list[str] | None:
        if name not in files:
            return None
        code[name] = files[name].read_bytes()
        return depends(code[name])

    order = load_order(WANTED, needs)
    loaded = {name: code[name] for name in order}
    entries = initramfs_entries(_busybox(), loaded)
    return gzip.compress(cpio.archive(entries), 6, mtime=0)


def initramfs_entries(busybox: bytes, modules: Mapping[str, bytes]) -> list[cpio.Entry]:
    """Return the files of the guest; `modules` in the order in which they load."""
    return [
        *map(cpio.directory, ("bin", "dev", "etc", "m", "root")),
        cpio.console(),
        cpio.program("bin/busybox", busybox),
        cpio.link("bin/sh", "busybox"),
        cpio.program("init", _exporting(system.INIT)),
        *(
            cpio.program(f"bin/{name}", text.encode())
            for name, text in system.PROGRAMS.items()
        ),
        cpio.plain("m/order", "".join(f"{name}\n" for name in modules).encode()),
        *(cpio.plain(f"m/{name}.ko", code) for name, code in modules.items()),
    ]


def _exporting(script: str) -> bytes:
    first, rest = script.split("\n", 1)
    return f"{first}\n{system.PROFILE}{rest}".encode()


def write_image(file: Path, guest: Path, *, note: str = "tiny guest") -> None:
    """Write a raw disk image that boots the tiny guest without a hypervisor's help.

    The image is one FAT file system with SYSLINUX in its boot sector. Nothing is
    mounted, and root is not needed.

    Parameters
    ----------
    file
        The image; it is overwritten, and `IMAGE_MIB` large.
    guest
        Directory with ``vmlinuz`` and ``initrd.gz``; they are built if missing.
    note
        What ``/etc/moorage-system`` says in the guest, one line.

    Raises
    ------
    NotFound
        If ``mtools`` or ``syslinux`` is missing.
    CommandFailed
        If one of them fails.
    """
    build(guest)
    _image(file, guest, note)


def _image(file: Path, guest: Path, note: str) -> None:
    with TemporaryDirectory() as scratch:
        image = Path(scratch) / "image"
        _fill(image, guest, note)
        shutil.copyfile(image, file)


def _fill(image: Path, guest: Path, note: str) -> None:
    with image.open("wb") as made:
        made.truncate(IMAGE_MIB << 20)
    text = {
        "moorage.txt": note + "\n",
        "syslinux.cfg": system.SYSLINUX.format(arguments=system.ARGUMENTS),
    }
    for name, content in text.items():
        (image.parent / name).write_text(content)
    sectors = IMAGE_MIB << 11
    tracks = sectors // (_SECTORS * _HEADS)
    geometry = ["-t", str(tracks), "-h", str(_HEADS), "-s", str(_SECTORS)]
    _tool(["mformat", "-i", str(image), *geometry, "-v", "MOORAGE", "-N", "4d4f4f52"])
    sources = [guest / "vmlinuz", guest / "initrd.gz"]
    sources += [image.parent / name for name in text]
    _tool(["mcopy", "-i", str(image), *map(str, sources), "::/"])
    _tool(["syslinux", "--install", str(image)])


def _tool(argv: list[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotFound(
            f"{argv[0]} is missing", hint="apt-get install mtools syslinux"
        ) from None
    if done.returncode:
        raise CommandFailed(f"{argv[0]} failed: {done.stderr.strip()}")
