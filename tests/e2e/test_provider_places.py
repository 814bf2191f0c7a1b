# SPDX-License-Identifier: BSD-2-Clause
"""What others put in the way of the providers that come with Moorage: real agents.

Somebody who may write to the shared directory puts a link in the place of an image, or
of a file beside it; somebody who may send requests names a directory of the node's.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
SECRET = b"SECRET-OF-THE-NODE"
MIB = 1 << 20


class Harbour:
    """A node, and a directory of its own with a file in it that nobody may touch."""

    def __init__(self, town: Scratch, own: Path) -> None:
        self.town = town
        self.own = own
        own.mkdir(mode=0o700)
        self.secret = own / "secret"
        self.secret.write_bytes(SECRET.ljust(16 * MIB, b"."))

    def does(self, line: str) -> str:
        """Type a line that succeeds; return what it says."""
        done = self._type(line)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refuses(self, line: str) -> str:
        """Type a line that fails; return all that it says."""
        done = self._type(line)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def tries(self, line: str) -> None:
        """Type a line that may succeed or fail."""
        self._type(line)

    def _type(self, line: str) -> subprocess.CompletedProcess[str]:
        socket = {"MOORAGE_SOCKET": f"{self.town.root}/master/luxi.sock"}
        program, *words = line.split()
        return subprocess.run(
            [BIN / program, *words],
            env={**os.environ, **socket},
            capture_output=True,
            text=True,
            check=False,
        )

    def image(self, provider: str, disk: str) -> Path:
        """Return where the image of a disk is."""
        told = self.does(f"gnt-disk list --no-headers -o volume {disk}").strip()
        return self.town.path / "shared" / provider / told

    def swapped(self, path: Path) -> None:
        """Put a link to the node's own file in the place of a file."""
        if path.exists():
            path.rename(path.with_name(f"{path.name}-away"))
        path.symlink_to(self.secret)

    def untouched(self) -> bool:
        """Whether the node's own file is as it was, and nothing is beside it."""
        kept = self.secret.read_bytes()
        alone = [one.name for one in self.own.iterdir()] == ["secret"]
        return alone and kept == SECRET.ljust(16 * MIB, b".")


@pytest.fixture
def harbour(scratch_of: Callable[[str], Scratch], tmp_path: Path) -> Harbour:
    return Harbour(scratch_of("--nodes 1 --hypervisor fake"), tmp_path / "own")


def test_a_directory_that_the_node_does_not_list_is_refused(harbour: Harbour) -> None:
    for provider in ("loop", "qsd"):
        for name in ("dir", "run"):
            asked = f"-D {name}={harbour.own}"
            for line in (
                f"gnt-disk add -t ext -p {provider} -s 8M {asked} d1",
                f"gnt-disk adopt -t ext -p {provider} {asked} secret",
            ):
                told = harbour.refuses(line)
                assert f"keeps no image files at {harbour.own}" in told, told
    assert harbour.does("gnt-disk list --no-headers -o name") == ""
    assert harbour.untouched()


def test_links_in_the_place_of_an_image_or_beside_it_lead_nowhere(
    harbour: Harbour,
) -> None:
    """Whatever a disk is asked: notes, leases, half-made copies have known names."""
    harbour.does("gnt-instance add -t diskless --no-install --no-nics -n node1 web1")
    for provider in ("loop", "qsd"):
        for disk in ("image", "beside"):
            harbour.does(f"gnt-disk add -t ext -p {provider} -s 8M {disk}-{provider}")
        image = harbour.image(provider, f"beside-{provider}")
        for end in (".info", ".info.new", ".lease.new"):
            harbour.swapped(image.with_name(f"{image.name}{end}"))
        harbour.does(f"gnt-disk attach beside-{provider} web1")
        harbour.does(f"gnt-disk detach beside-{provider}")
        assert harbour.untouched()
        harbour.swapped(harbour.image(provider, f"image-{provider}"))
        disk = f"image-{provider}"
        for what in (f"attach {disk} web1", f"grow {disk} 32M", f"remove -f {disk}"):
            assert "is a symbolic link" in harbour.refuses(f"gnt-disk {what}")
        assert harbour.untouched()
    assert "SECRET" not in harbour.does("gnt-storage reconcile --all")
    for provider in ("loop", "qsd"):
        harbour.does(f"gnt-disk remove -f beside-{provider}")
    assert harbour.untouched()


def test_a_link_in_the_place_of_a_volume_that_has_a_uri_alone_is_not_followed(
    harbour: Harbour,
) -> None:
    """Programs of root's read and write it: for a copy, an export, an OS's scripts."""
    _sells_uris(harbour, "nas")
    town = harbour.town.path
    (town / "os" / "tiny" / "image.raw").write_bytes(b"A-SYSTEM")
    harbour.does("gnt-instance add -t diskless -o tiny --no-install --no-nics web1")
    harbour.does("gnt-disk add -t ext -p nas -s 16M d1")
    harbour.does("gnt-disk attach d1 web1")
    harbour.does("gnt-instance shutdown web1")
    harbour.does("gnt-disk clone d1 --name good -t file")
    harbour.does("gnt-instance reinstall -f web1")
    image = harbour.image("nas", "d1")
    assert image.read_bytes().startswith(b"A-SYSTEM")
    harbour.swapped(image)
    for line in (
        "gnt-disk clone d1 --name bad -t file",
        "gnt-disk convert d1 -t file",
        "gnt-backup export --disk d1 -n node1",
        "gnt-backup export web1 -n node1",
        "gnt-instance reinstall -f web1",
    ):
        assert f"node1 does not open {image}" in harbour.refuses(line), line
    assert harbour.untouched()
    for place in ("local", "shared", "export"):
        found = [one for one in (town / place).rglob("*") if not one.is_symlink()]
        assert not any(SECRET in one.read_bytes() for one in found if one.is_file())


def test_what_is_no_file_is_not_opened_at_all(harbour: Harbour) -> None:
    """To open a device is to use it: a watchdog then counts down to a reset."""
    harbour.does("gnt-instance add -t diskless --no-install --no-nics -n node1 web1")
    for provider in ("loop", "qsd"):
        disk = f"pipe-{provider}"
        harbour.does(f"gnt-disk add -t ext -p {provider} -s 8M {disk}")
        image = harbour.image(provider, disk)
        with ExitStack() as stack:
            waiting = [
                stack.enter_context(_opener(image.with_name(f"{image.name}{end}")))
                for end in (".info", ".lease")
            ]
            harbour.tries(f"gnt-disk attach {disk} web1")
            harbour.tries(f"gnt-disk detach {disk}")
            harbour.tries("gnt-storage reconcile --all")
            waiting.append(stack.enter_context(_opener(image)))
            told = harbour.refuses(f"gnt-disk attach {disk} web1")
            assert "it is no regular file" in told, told
            assert [one.poll() for one in waiting] == [None] * 3


@contextmanager
def _opener(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Put a pipe in the place of a file; yield who waits until somebody opens it."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    waiting = subprocess.Popen(["sh", "-c", ': >"$0"', path])
    try:
        yield waiting
    finally:
        waiting.kill()
        waiting.wait()
        path.unlink(missing_ok=True)


def _sells_uris(harbour: Harbour, name: str) -> None:
    """Install a provider that has no block devices, and looks at nothing."""
    at = harbour.town.path / "extstorage" / name
    images = harbour.town.path / "shared" / name
    for one in (at, images):
        one.mkdir()
    does = dict.fromkeys(("detach", "grow", "remove", "setinfo", "verify"), "")
    does["create"] = f"truncate -s ${{VOL_SIZE}}M {images}/$VOL_NAME"
    at_last = f"file:{images}/$VOL_NAME"
    does["attach"] = f"echo; echo fake:{at_last}; echo kvm:{at_last}"
    for script, line in does.items():
        (at / script).write_text(f"#!/bin/sh\n{line}\n")
        (at / script).chmod(0o755)
    (at / "parameters.list").touch()
