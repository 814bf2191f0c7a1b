# SPDX-License-Identifier: BSD-2-Clause
"""Which volumes a storage has: what templates ask, and what they make of the answer."""

from typing import Any

import pytest

from moorage.errors import Failed, NotSupported
from moorage.model import Provider, Volume
from moorage.storage import TEMPLATES, Can, Command, Output, Site, Steps, Template
from moorage.storage.printed import parse_list
from moorage.storage.validation import looks_ours
from moorage.units import Mib

UUID = "5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11"
SITE = Site(
    node="node1",
    settings={"file_storage_dir": "/srv/file"},
    providers={
        "nas": Provider(name="nas", path="/e/nas", optional=("list",)),
        "mute": Provider(name="mute", path="/e/mute"),
    },
)


def listed(
    template: str, params: dict[str, str], printed: str
) -> tuple[Command, tuple[Volume, ...]]:
    """Return the one command that lists a storage, and the volumes it found."""
    steps: Steps[Any] = TEMPLATES[template](SITE).volumes(params)
    command = next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(Output(stdout=printed))
    return command, end.value.value


def test_a_directory_tells_its_regular_files_with_odd_names_and_rounded_up() -> None:
    command, found = listed("file", {}, "1048577 web1/a b\nc.img\x000 d\x00")
    assert command.argv[:3] == ("find", "-H", "/srv/file")
    assert command.images == {"/srv/file": "directory"}
    assert command.whole
    assert command.reads
    assert found == (
        Volume(logical_id=("loop", "/srv/file/web1/a b\nc.img"), size=Mib(2)),
        Volume(logical_id=("loop", "/srv/file/d"), size=Mib(0)),
    )


def test_a_provider_prints_a_line_a_volume() -> None:
    printed = "vol1 1024 originstname+web1 and more\n\nvol2 -\n"
    command, found = listed("ext", {"provider": "nas", "dir": "/x"}, printed)
    assert command.argv == ("/e/nas/list",)
    assert command.env["EXTP_DIR"] == "/x"
    assert found == (
        Volume(
            logical_id=("nas", "vol1"),
            size=Mib(1024),
            note="originstname+web1 and more",
        ),
        Volume(logical_id=("nas", "vol2")),
    )


def test_a_list_that_is_half_understood_is_none() -> None:
    with pytest.raises(Failed, match="not NAME SIZE: 'error: no route'"):
        parse_list("nas", "vol1 5\nerror: no route\n")


def test_a_provider_without_the_script_says_so() -> None:
    with pytest.raises(NotSupported, match="'mute' does not tell which volumes"):
        next(TEMPLATES["ext"](SITE).volumes({"provider": "mute"}))


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_who_declares_that_it_lists_has_the_verb(name: str) -> None:
    kind = TEMPLATES[name]
    declared = Can.LIST in kind.capabilities.can
    assert declared == (kind.volumes is not Template.volumes)


@pytest.mark.parametrize(
    ("volume", "template", "ours"),
    [
        (f"{UUID}.ext.disk0", "ext", True),
        (f"/srv/file/web1/{UUID}.file.disk12", "file", True),
        (f"/srv/shared/san/{UUID}.ext.disk0", "sharedfile", False),
        (f"{UUID}.disk0_meta", "plain", True),
        (f"{UUID}.snap", "ext", True),
        (f"{UUID}.snap.part", "file", True),
        ("root", "plain", False),
        (f"{UUID}", "ext", False),
        (f"old-{UUID}.ext.disk0", "ext", False),
        (f"{UUID}.ext.disk0.bak", "ext", False),
    ],
)
def test_names_that_look_ours(volume: str, template: str, ours: bool) -> None:
    assert looks_ours(volume, template) is ours
