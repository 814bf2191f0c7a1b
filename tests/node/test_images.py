# SPDX-License-Identifier: BSD-2-Clause
"""Image files, where somebody else may write to their directory, too.

Each attack is carried out on a real machine with real files: what must never be touched
is a key that lies beside the directory of the images.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from moorage.errors import Failed, MoorageError
from moorage.model import Disk
from moorage.node.extensions.oses import Install, OsDisk, command, look
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import UNLISTED, Images
from moorage.node.verbs.context import drive
from moorage.protocol import InstallSystem
from moorage.storage import Command, Opened, Outcome, Site, Where, template_named
from moorage.units import Mib

KEY = "PRIVATE KEY\n"
VERBS = {
    "create": (),
    "attach": (),
    "measure": (),
    "grow": (Mib(2),),
    "snapshot": ("copy", Mib(1)),
    "remove": (),
}


class Yard:
    """A node whose directory for images others may write to, and what they want."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root, self.keys = top / "shared", top / "keys"
        for directory in (self.root, self.keys):
            directory.mkdir()
        self.key = self.keys / "ca.key"
        self.key.write_text(KEY)
        self.listed = top / "file-storage-paths"
        self.allow(self.root)
        self.images = Images("node1", self.listed, [top / "state"])
        self.machine = LocalMachine(
            top / "log", Providers([]), [top / "os"], self.images
        )
        self.image = self.root / "detached" / "v1"
        self.disk = Disk(
            uuid="d1",
            dev_type="sharedfile",
            logical_id=("loop", str(self.image)),
            size=Mib(1),
        )

    def allow(self, *directories: Path) -> None:
        self.listed.write_text("# ours\n" + "".join(f"{one}\n" for one in directories))

    async def do(self, verb: str, *args: object, root: Path | None = None) -> object:
        site = Site(
            node="node1", settings={"shared_file_storage_dir": str(root or self.root)}
        )
        steps = getattr(template_named("sharedfile")(site), verb)(self.disk, *args)
        return await drive(steps, lambda command: self.machine.run(command, 60))

    def unharmed(self) -> bool:
        copies = [
            path
            for path in self.root.rglob("*")
            if path.is_file() and not path.is_symlink() and KEY in path.read_text()
        ]
        return [*self.keys.iterdir()] == [self.key] and (
            self.key.read_text() == KEY and not copies
        )


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


async def test_the_verbs_work(yard: Yard) -> None:
    assert await yard.do("create") is Outcome.CHANGED
    assert await yard.do("create") is Outcome.UNCHANGED
    assert await yard.do("attach") == Where(path=str(yard.image))
    assert await yard.do("grow", Mib(3)) is Outcome.CHANGED
    assert await yard.do("measure") == 3
    yard.image.write_bytes(b"data" + bytes(4096))
    assert await yard.do("snapshot", "copy", Mib(4)) is Outcome.CHANGED
    copy = yard.image.with_name("copy")
    assert (copy.read_bytes()[:4], copy.stat().st_size >> 20) == (b"data", 4)
    assert copy.stat().st_mode & 0o077 == 0
    copy.unlink()
    assert await yard.do("remove") is Outcome.CHANGED
    assert await yard.do("remove") is Outcome.UNCHANGED
    assert [*yard.root.rglob("*")] == [yard.image.parent]


@pytest.mark.parametrize("verb", VERBS)
async def test_a_link_in_the_place_of_the_file_leads_nowhere(
    yard: Yard, verb: str
) -> None:
    yard.image.parent.mkdir()
    yard.image.symlink_to(yard.key)
    if verb == "remove":  # the link goes, what it leads to stays
        assert await yard.do(verb) is Outcome.CHANGED
    else:
        with pytest.raises(Failed, match=f"node1 does not open {yard.image}: "):
            await yard.do(verb, *VERBS[verb])
    assert yard.unharmed()


@pytest.mark.parametrize("verb", VERBS)
async def test_a_link_in_the_place_of_a_directory_leads_nowhere(
    yard: Yard, verb: str
) -> None:
    yard.image.parent.symlink_to(yard.keys)
    with pytest.raises(Failed, match="a symbolic link, or no directory, is on the way"):
        await yard.do(verb, *VERBS[verb])
    assert yard.unharmed()


async def test_a_link_in_the_place_of_a_half_made_copy_leads_nowhere(
    yard: Yard,
) -> None:
    await yard.do("create")
    yard.image.with_name("copy.part").symlink_to(yard.key)
    with pytest.raises(Failed, match="does not open"):
        await yard.do("snapshot", "copy", Mib(2))
    assert yard.unharmed()


@pytest.mark.parametrize("kind", ["fifo", "directory"])
async def test_what_is_no_regular_file_is_not_waited_for(yard: Yard, kind: str) -> None:
    yard.image.parent.mkdir()
    os.mkfifo(yard.image) if kind == "fifo" else yard.image.mkdir()
    for verb in ("create", "attach", "grow", "measure", "snapshot"):
        with pytest.raises(Failed, match="it is no regular file"):
            await yard.do(verb, *VERBS[verb])
    with pytest.raises(Failed, match="it is no regular file"):
        yard.images.open(str(yard.image), os.O_RDWR)


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Put a link to `other` in the place of `one`, and take it away, all the time."""
    aside, link = one.with_name(f"{one.name}-aside"), one.with_name(f"{one.name}-link")
    link.symlink_to(other)
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            for source, target in (
                (one, aside),
                (link, one),
                (one, link),
                (aside, one),
            ):
                with suppress(OSError):
                    source.rename(target)

    thief = threading.Thread(target=swap)
    thief.start()
    try:
        yield
    finally:
        ended.set()
        thief.join()


@pytest.mark.parametrize("what", ["file", "directory"])
async def test_who_swaps_links_while_verbs_run_gains_nothing(
    yard: Yard, what: str
) -> None:
    await yard.do("create")
    swapped = yard.image if what == "file" else yard.image.parent
    other = yard.key if what == "file" else yard.keys
    with swapping(swapped, other):
        for turn in range(12):
            for verb in ("grow", "snapshot", "measure", "create"):
                given = {"grow": (Mib(2 + turn),), "snapshot": (f"s{turn}", Mib(1))}
                with suppress(MoorageError):
                    await yard.do(verb, *given.get(verb, ()))
            with suppress(MoorageError):
                os.close(yard.images.open(str(yard.image), os.O_RDWR))
    assert yard.unharmed()


async def test_the_system_script_gets_the_file_that_was_looked_at(yard: Yard) -> None:
    definition = yard.top / "os" / "tiny"
    definition.mkdir(parents=True)
    (definition / "ganeti_api_version").write_text("20\n")
    for name in ("create", "import", "export", "rename", "verify"):
        (definition / name).write_text('#!/bin/sh\nprintf system >"$DISK_0_PATH"\n')
        (definition / name).chmod(0o755)
    await yard.do("create")
    where = Where(path=str(yard.image))
    disk = Disk(uuid="d1", size=Mib(1), dev_type="file", logical_id=("loop", "/d1"))
    verb = InstallSystem(uuid="i1", name="web1", os="tiny", disks=(disk,))
    install = Install(verb, "node1", (OsDisk(disk, where),))
    asked = command("create", {"tiny": look(definition)}, install)
    await yard.machine.run(asked, 60)
    assert yard.image.read_bytes() == b"system"
    yard.image.unlink()
    yard.image.symlink_to(yard.key)
    with pytest.raises(Failed, match="does not open"):
        await yard.machine.run(asked, 60)
    assert yard.unharmed()


# -- the node's own list ---------------------------------------------------------------


@pytest.mark.requirement("S0-18")
@pytest.mark.parametrize("verb", VERBS)
async def test_no_verb_works_outside_of_the_list_whatever_the_master_asks(
    yard: Yard, verb: str
) -> None:
    """Of the requirement: a directory that is not in the list."""
    yard.image.parent.mkdir()
    if verb != "create":
        yard.image.write_bytes(bytes(1 << 20))
    before = sorted(yard.root.rglob("*"))
    yard.allow(yard.top / "elsewhere", Path("/etc"))
    with pytest.raises(Failed) as caught:
        await yard.do(verb, *VERBS[verb])
    told = f"its list {yard.listed} allows {yard.top}/elsewhere"
    assert caught.value.message.endswith(told)
    assert caught.value.hint.endswith(f">>{yard.listed}")
    assert sorted(yard.root.rglob("*")) == before


def test_no_guest_gets_a_disk_outside_of_the_list(yard: Yard) -> None:
    with pytest.raises(Failed, match=f"keeps no image files at {yard.key}"):
        yard.images.open(str(yard.key), os.O_RDWR)
    with pytest.raises(Failed, match="keeps no image files at"):
        yard.images.open(f"{yard.root}/../keys/ca.key", os.O_RDWR)


def test_the_state_of_the_node_holds_no_images(yard: Yard) -> None:
    state = yard.top / "state"
    state.mkdir()
    (state / "node.key").write_text(KEY)
    yard.allow(yard.top)
    with pytest.raises(Failed, match="is Moorage's own"):
        yard.images.open(str(state / "node.key"), os.O_RDONLY)


def test_a_list_may_name_a_link_and_never_the_system(yard: Yard) -> None:
    (yard.top / "link").symlink_to("shared")
    (yard.root / "v1").touch()
    (yard.top / "system").symlink_to("/usr")
    yard.allow(yard.top / "link", yard.top / "system", Path("/usr/lib"), Path("/"))
    assert yard.images.allowed() == (f"{yard.top}/link", f"{yard.top}/system")
    os.close(yard.images.open(f"{yard.top}/link/v1", os.O_RDWR))
    with pytest.raises(Failed, match="is of the system"):
        yard.images.open(f"{yard.top}/system/bin/env", os.O_RDONLY)


def test_without_a_list_ganetis_own_directories_are_allowed(yard: Yard) -> None:
    yard.listed.unlink()
    assert yard.images.allowed() == UNLISTED
    with pytest.raises(Failed, match="allows /srv/ganeti/file-storage, /srv/ganeti/sh"):
        yard.images.open(str(yard.key), os.O_RDONLY)


def test_a_list_that_others_may_write_is_not_believed(yard: Yard) -> None:
    yard.listed.chmod(0o666)
    assert yard.images.allowed() == ()
    with pytest.raises(Failed, match=r"may be written by others \(mode 0666\)"):
        yard.images.open(str(yard.image), os.O_RDONLY)


async def test_a_command_needs_its_files_unless_it_looks_for_them(yard: Yard) -> None:
    path = str(yard.root / "none")
    asked = Command(("cat", path), images={path: Opened.FILE})
    with pytest.raises(Failed, match=f"^cat {path} failed: no such file$"):
        await yard.machine.run(asked, 60)


async def test_what_a_program_says_names_the_file(yard: Yard) -> None:
    path = str(yard.root / "v1")
    Path(path).touch()
    asked = Command(("sh", "-c", 'echo "bad $0" >&2; exit 3', path))
    with pytest.raises(Failed, match=f"\nbad {path}$"):
        await yard.machine.run(Command(asked.argv, images={path: Opened.FILE}), 60)
