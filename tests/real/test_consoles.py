# SPDX-License-Identifier: BSD-2-Clause
"""Consoles through the agents, screens over VNC, and a system that boots from a CD."""

import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from moorage.api.luxi import LuxiClient
from moorage.errors import MoorageError
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.testing.guest_image import system

pytestmark = pytest.mark.real

ISOLINUX = Path("/usr/lib/ISOLINUX/isolinux.bin")
LDLINUX = Path("/usr/lib/syslinux/modules/bios/ldlinux.c32")


def make_iso(directory: Path, guest: Path) -> Path:
    """Make a CD that boots the tiny guest, as an installer's does."""
    tree = directory / "cd"
    tree.mkdir()
    for file in (ISOLINUX, LDLINUX, guest / "vmlinuz", guest / "initrd.gz"):
        copyfile(file, tree / file.name)
    arguments = system.ARGUMENTS.replace("quiet loglevel=3", "console=tty0")
    config = system.SYSLINUX.format(arguments=arguments)
    (tree / "isolinux.cfg").write_text(config)
    made = directory / "installer.iso"
    boot = ["-b", "isolinux.bin", "-c", "boot.cat", "-no-emul-boot"]
    boot += ["-boot-load-size", "4", "-boot-info-table"]
    words = ["xorriso", "-as", "mkisofs", "-quiet", *boot, "-o", str(made), str(tree)]
    subprocess.run(words, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def installer(town: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a town with a guest that boots from a CD, and has a screen."""
    made = make_iso(tmp_path_factory.mktemp("iso"), Path(town.scratch.guest))
    image = town.path / "shared" / "installer.iso"
    copyfile(made, image)
    given = f"kvm:boot_order=cdrom,cdrom_image_path={image},vga=std"
    town.type(f"gnt-instance add -t diskless --no-nics -n node2 -H {given} inst1")
    yield town
    town.type("gnt-instance remove -f --shutdown-timeout=0 inst1")
    image.unlink()


def luxi(town: Any) -> LuxiClient:
    return LuxiClient(town.scratch.environment()["MOORAGE_SOCKET"])


def until(line: socket.socket, came: bytes, wanted: bytes) -> bytes:
    """Read until something is said."""
    line.settimeout(180)
    while wanted not in came:
        data = line.recv(4096)
        assert data, f"the line ended: {came!r}"
        came += data
    return came


def test_an_installer_boots_from_a_cd_and_answers_on_its_console(
    installer: Any,
) -> None:
    told, line, came = luxi(installer).line("inst1")
    assert told["node"] == "node2"
    with line:
        until(line, came, b"guest#")
        line.sendall(b"\necho ans''wered\n")
        until(line, b"", b"answered")
        with pytest.raises(MoorageError, match="somebody is at the console of inst1"):
            luxi(installer).line("inst1")
    assert "moorage.system=disk" in installer.inside("inst1", "cat /proc/cmdline")


class Viewer:
    """As much of a VNC viewer as sees a screen."""

    def __init__(self, line: socket.socket, came: bytes, password: str) -> None:
        self._line, self._came = line, came
        line.settimeout(60)
        assert self._read(12) == b"RFB 003.008\n"
        line.sendall(b"RFB 003.008\n")
        kinds = self._read(self._read(1)[0])
        assert kinds == b"\x02", "VNC asks for a password, and nothing else"
        line.sendall(b"\x02")
        line.sendall(self._answer(self._read(16), password))
        self.let_in = self._read(4) == b"\0\0\0\0"
        if self.let_in:
            line.sendall(b"\x01")
            self.width, self.height = struct.unpack(">HH", self._read(4))
            self._read(16)
            self._read(struct.unpack(">I", self._read(4))[0])

    def _answer(self, challenge: bytes, password: str) -> bytes:
        """Return the challenge under the password, whose bits VNC turns around."""
        padded = password.encode().ljust(8, b"\0")[:8]
        key = bytes(int(f"{byte:08b}"[::-1], 2) for byte in padded)
        cipher = Cipher(TripleDES(key * 3), modes.ECB())  # noqa: S305 - RFC 6143 says so
        return cipher.encryptor().update(challenge)

    def _read(self, count: int) -> bytes:
        while len(self._came) < count:
            data = self._line.recv(1 << 16)
            assert data, "the viewer was hung up on"
            self._came += data
        found, self._came = self._came[:count], self._came[count:]
        return found

    def colours(self) -> set[bytes]:
        """Return the colours that the whole screen has now."""
        plain = struct.pack(">BBBBHHHBBBxxx", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
        self._line.sendall(b"\0\0\0\0" + plain)
        self._line.sendall(struct.pack(">BBHi", 2, 0, 1, 0))  # raw pixels
        whole = (3, 0, 0, 0, self.width, self.height)
        self._line.sendall(struct.pack(">BBHHHH", *whole))
        found: set[bytes] = set()
        kind, count = struct.unpack(">BxH", self._read(4))
        assert kind == 0
        for _ in range(count):
            _, _, width, height, _ = struct.unpack(">HHHHi", self._read(12))
            pixels = self._read(width * height * 4)
            found |= {pixels[n : n + 4] for n in range(0, len(pixels), 4)}
        return found


def test_a_screen_is_seen_with_the_ticket_alone(installer: Any) -> None:
    town = installer
    told, line, came = luxi(town).line("inst1", "vnc", "ticket42")
    assert told["by_ticket"]
    with line:
        viewer = Viewer(line, came, "ticket42")
        assert viewer.let_in
        assert viewer.width >= 640
        assert len(viewer.colours()) > 1, "the kernel's words stand on the screen"
    _, line, came = luxi(town).line("inst1", "vnc", "ticket43")
    with line:
        assert not Viewer(line, came, "ticket42").let_in


def test_a_line_ends_with_a_migration_and_goes_on_at_the_new_node(town: Any) -> None:
    """The guest goes by a secondary address, where no agent listens."""
    town.type("gnt-node modify -s 127.0.98.3 node3")
    town.guest("plain1", "node1")
    try:
        with pytest.raises(MoorageError, match="instance plain1 has no screen"):
            luxi(town).line("plain1", "vnc", "ticket42")
        _, line, came = luxi(town).line("plain1")
        with line:
            until(line, came, b"guest#")
            town.type("gnt-instance migrate -f -n node3 plain1")
            came = b""
            while data := line.recv(4096):
                came += data  # until the guest is gone from here
        told, line, came = luxi(town).line("plain1")
        assert told["node"] == "node3"
        with line:
            line.sendall(b"\necho ans''wered\n")
            until(line, came, b"answered")
    finally:
        town.type("gnt-instance remove -f --shutdown-timeout=0 plain1")
        town.type(f"gnt-node modify -s {town.scratch.address('node3')} node3")


@pytest.fixture(scope="module")
def open_screen(town: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a town with a guest whose VNC has a port, a password and certificates."""
    path = tmp_path_factory.mktemp("x509")
    key, authority = tls.new_key(), Authority.make(path, "screens")
    signed = authority.sign_node(tls.self_signed(key, "node1"), "node1")
    for name, content in (
        ("ca-cert.pem", tls.pem(authority.certificate)),
        ("server-cert.pem", tls.pem(signed)),
        ("server-key.pem", tls.key_pem(key)),
        ("password", b"s3cret42\n"),
    ):
        (path / name).write_bytes(content)
    password = f"vnc_password_file={path}/password"
    for name, more in (("port1", ""), ("port2", f",vnc_tls=true,vnc_x509_path={path}")):
        given = f"kvm:vnc_bind_address=127.0.0.1,{password}{more}"
        town.type(f"gnt-instance add -t diskless --no-nics -n node1 -H {given} {name}")
    yield town
    town.type("gnt-instance remove -f --shutdown-timeout=0 port1")
    town.type("gnt-instance remove -f --shutdown-timeout=0 port2")


def port_of(town: Any, name: str) -> int:
    (row,) = town.ask(f"gnt-instance list -o network_port {name}")
    return int(row["network_port"])


def test_a_port_asks_for_the_password_of_the_file(open_screen: Any) -> None:
    port = port_of(open_screen, "port1")
    for password, right in (("s3cret42", True), ("s3cret43", False)):
        with socket.create_connection(("127.0.0.1", port)) as line:
            assert Viewer(line, b"", password).let_in is right
    told, line, came = luxi(open_screen).line("port1", "vnc", "ticket42")
    assert not told["by_ticket"]
    with line:
        assert Viewer(line, came, "s3cret42").let_in


def test_a_port_with_certificates_speaks_tls(open_screen: Any) -> None:
    with socket.create_connection(("127.0.0.1", port_of(open_screen, "port2"))) as line:
        line.settimeout(60)
        assert line.recv(12, socket.MSG_WAITALL) == b"RFB 003.008\n"
        line.sendall(b"RFB 003.008\n")
        assert line.recv(2, socket.MSG_WAITALL) == b"\x01\x13"  # VeNCrypt, alone
        line.sendall(b"\x13")
        assert line.recv(2, socket.MSG_WAITALL) == b"\x00\x02"  # its version
        line.sendall(b"\x00\x02")
        offer = line.recv(6, socket.MSG_WAITALL)
        assert offer == b"\x00\x01" + struct.pack(">I", 261)  # X509Vnc
        line.sendall(struct.pack(">I", 261))
        assert line.recv(1) == b"\x01"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(line) as secured:
            assert len(secured.recv(16)) == 16  # the challenge of the password


def test_a_port_that_strangers_reach_needs_a_password(town: Any) -> None:
    add = "gnt-instance add -t diskless --no-nics -n node1 -H kvm:vnc_bind_address="
    said = town.refused(f"{add}0.0.0.0 w")
    assert "lets everybody who reaches the node see the guest and type" in said
    assert "it needs vnc_password_file" in said
