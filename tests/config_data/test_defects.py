# SPDX-License-Identifier: BSD-2-Clause
"""Recorded files with random defects: refused or told of, and never a traceback."""

import io
import json
import os
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ganetis_files import Ganeti
from moorage.cli import moorage
from moorage.cli.main import run
from moorage.cli.terminal import Terminal
from moorage.config_data import KNOWN, NEWEST, Version, read, upgrade
from moorage.config_data.verify import complaints
from moorage.errors import BadInput
from support.damage import damage
from support.sampling import SEED

pytestmark = pytest.mark.oracle
RECORDED = [str(one) for one in KNOWN if one < Version(3, 0)]
DEFECTS = 60


def outcome(data: bytes) -> str:
    """Return why a file is refused, or all that is told of it."""
    numbers = count()
    try:
        document, notes = upgrade(read(data), NEWEST, lambda: f"new-{next(numbers)}")
    except BadInput as refused:
        return refused.message
    found = list(complaints(document))
    assert all(one.message and one.code and one.kind for one in found)
    return "; ".join([*notes, *(one.message for one in found)])


@pytest.mark.parametrize("version", RECORDED)
def test_a_random_defect(ganeti: Ganeti, version: str) -> None:
    dice = random.Random(f"{SEED} {version}")  # noqa: S311
    data = ganeti.recorded(version)
    for _ in range(DEFECTS):
        document = json.loads(data)
        for _ in range(dice.randint(1, 3)):
            damage(document, dice)
        outcome(json.dumps(document).encode())


@pytest.mark.parametrize("version", RECORDED)
def test_a_file_that_is_cut_off(ganeti: Ganeti, version: str) -> None:
    data = ganeti.recorded(version).rstrip()
    at = random.Random(f"{SEED} {version}").randrange(len(data) - 1)  # noqa: S311
    assert outcome(data[:at]).startswith("it is no JSON")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"\xff", "it is no JSON"),
        (b"NaN", "it is no JSON"),
        (b"1e999", "it is no JSON"),
        (b"9" * 5000, "it is no"),
        (b'{"a": 1, "b": ' + b"9" * 5000 + b"}", "it is no"),
        (b"[" * 200 + b"]" * 200, "nested too deep"),
        (b"[" * 100_000_000, "nested too deep"),
    ],
    ids=[
        "not UTF-8",
        "NaN",
        "infinite",
        "huge",
        "inside",
        "nested",
        "100 MB of nesting",
    ],
)
def test_what_no_file_holds(
    ganeti: Ganeti, tmp_path: Path, value: bytes, why: str
) -> None:
    data = ganeti.recorded("2.16")
    at = data.index(b'"serial_no"')
    data = data[:at] + b'"more": ' + value + b", " + data[at:]
    assert why in outcome(data)
    assert why in looked_at(data, tmp_path)


@pytest.mark.parametrize("version", RECORDED)
def test_a_random_defect_is_told_by_the_command(
    ganeti: Ganeti, tmp_path: Path, version: str
) -> None:
    """A plan, or why there is none; and nothing is made."""
    dice = random.Random(f"{SEED} {version} command")  # noqa: S311
    data = ganeti.recorded(version)
    for _ in range(10):
        document = json.loads(data)
        damage(document, dice)
        assert looked_at(json.dumps(document).encode(), tmp_path)


@pytest.mark.parametrize(
    ("place", "change", "why"),
    [
        ("instances", {"admin_state": "flying"}, "a state is up, down, offline"),
        ("instances", {"tags": ["a b<script>"]}, "is not a tag"),
        (
            "nics",
            {"nicparams": {"link": "br0; rm -rf /"}},
            "is not the name of a bridge",
        ),
        ("nics", {"mac": "zz"}, "is no MAC address"),
        ("nics", {"ip": "1.2.3.4; x"}, "is no address"),
        ("cluster", {"nicparams": {"default": {"link": "x; y"}}}, "name of a bridge"),
        ("networks", {"network": "10.0.0.0/8"}, "a network has a mask of"),
        ("networks", {"mac_prefix": "zz"}, "a MAC prefix is three bytes"),
        ("instances", {"network_port": 99999}, "no port has the number 99999"),
    ],
    ids=[
        *("state", "tag", "link", "mac", "address", "preset", "network", "prefix"),
        "port",
    ],
)
def test_what_requests_refuse_an_import_refuses(
    ganeti: Ganeti, tmp_path: Path, place: str, change: dict[str, Any], why: str
) -> None:
    document = json.loads(ganeti.recorded("2.16"))
    parts = {
        "cluster": [document["cluster"]],
        "nics": [one["nics"][0] for one in document["instances"].values()],
        "instances": [*document["instances"].values()],
        "networks": [*document["networks"].values()],
    }
    parts[place][0].update(change)
    assert why in looked_at(json.dumps(document).encode(), tmp_path)


@pytest.mark.parametrize("name", ["0", "none", "5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11"])
def test_a_name_that_no_disk_can_have_is_told(
    ganeti: Ganeti, tmp_path: Path, name: str
) -> None:
    document = json.loads(ganeti.recorded("2.16"))
    next(iter(document["disks"].values()))["name"] = name
    said = looked_at(json.dumps(document).encode(), tmp_path)
    assert f"WARNING: disk {name}: a disk cannot be called" in said


def test_a_key_that_an_object_says_twice(ganeti: Ganeti, tmp_path: Path) -> None:
    """Readers differ in which of both counts."""
    text = ganeti.recorded("2.16").decode()
    name = json.loads(text)["cluster"]["cluster_name"]
    said = f'"cluster_name": "{name}"'
    assert text.count(said) == 1
    twice = text.replace(said, f'{said}, "cluster_name": "another"')
    told = looked_at(twice.encode(), tmp_path)
    assert "it says the key 'cluster_name'" in told
    assert "twice" in told


def test_a_file_without_nodes(ganeti: Ganeti, tmp_path: Path) -> None:
    document = json.loads(ganeti.recorded("2.16")) | {"nodes": {}}
    said = looked_at(json.dumps(document).encode(), tmp_path)
    assert "it has no nodes" in said


@pytest.mark.parametrize("version", ["2.8", "2.16"])
@pytest.mark.parametrize("place", ["nodes", "instances"])
def test_two_objects_of_one_uuid(
    ganeti: Ganeti, tmp_path: Path, version: str, place: str
) -> None:
    """Neither takes the other's place."""
    document = json.loads(ganeti.recorded(version))
    first, second, *_ = document[place].values()
    second["uuid"] = first["uuid"]
    said = looked_at(json.dumps(document).encode(), tmp_path)
    told = f"two {place} have the uuid {first['uuid']}: "
    assert told + f"{first['name']} and {second['name']}" in said


def test_two_embedded_disks_of_one_uuid(ganeti: Ganeti, tmp_path: Path) -> None:
    document = json.loads(ganeti.recorded("2.8"))
    first, second, *_ = (
        disk for one in document["instances"].values() for disk in one["disks"]
    )
    second["uuid"] = first["uuid"]
    said = looked_at(json.dumps(document).encode(), tmp_path)
    assert f"two disks have the uuid {first['uuid']}: disk/0 of " in said
    assert not any(disk["logical_id"][-1] in said for disk in (first, second))


def test_a_secret_is_not_told(ganeti: Ganeti, tmp_path: Path) -> None:
    """A mirrored disk without its two volumes is no reason to print its secret."""
    document = json.loads(ganeti.recorded("2.16"))
    (disk,) = (it for it in document["disks"].values() if it["dev_type"] == "drbd")
    other = {**disk, "uuid": "another-one", "children": []}
    document["disks"] |= {"another-one": other}
    disk["children"] = []
    said = looked_at(json.dumps(document).encode(), tmp_path)
    assert disk["logical_id"][-1] not in said


@pytest.mark.parametrize(
    ("template", "volume", "said"),
    [
        ("file", ["loop", "/srv//web/X"], "is disk "),
        ("file", ["loop", "/srv/./web/X/"], "is disk "),
        ("file", ["blktap2", "/srv/web/X"], "is disk "),
        ("sharedfile", ["loop", "/srv/web/X"], "is disk "),
        ("blockdev", ["manual", "/srv/web/X"], "is disk "),
        ("file", ["loop", "/srv/y/../web/X"], "goes up again (..)"),
        ("gluster", ["loop", "../ganeti/X"], "goes up again (..)"),
    ],
)
def test_a_path_is_one_volume_however_it_is_written(
    ganeti: Ganeti, tmp_path: Path, template: str, volume: list[str], said: str
) -> None:
    document = json.loads(ganeti.recorded("2.16"))
    _, first, second = sorted(
        document["disks"].values(), key=lambda one: one["dev_type"]
    )
    first |= {"dev_type": "file", "logical_id": ["loop", "/srv/web/X"]}
    second |= {"dev_type": template, "logical_id": volume}
    if template == "file":  # on other nodes it is another one
        second["nodes"] = first["nodes"]
    assert said in looked_at(json.dumps(document).encode(), tmp_path)


@pytest.mark.parametrize("copy", ["plain", "drbd"])
def test_two_disks_of_one_volume(ganeti: Ganeti, tmp_path: Path, copy: str) -> None:
    """It would be deleted with either; on other nodes it is another volume."""
    document = json.loads(ganeti.recorded("2.16"))
    disks = sorted(document["disks"].values(), key=lambda one: one["dev_type"])
    mirrored, first, second = disks
    of = first if copy == "plain" else mirrored["children"][1]
    second["logical_id"] = of["logical_id"]
    first["nodes"], mirrored["nodes"] = second["nodes"], second["nodes"]
    said = looked_at(json.dumps(document).encode(), tmp_path)
    assert f"its volume {'/'.join(of['logical_id'])} is disk " in said
    nodes = sorted(document["nodes"])
    first["nodes"] = mirrored["nodes"] = nodes[:1]
    second["nodes"] = nodes[1:2]
    assert "its volume" not in looked_at(json.dumps(document).encode(), tmp_path)


@pytest.mark.parametrize("number", ["many", [1], -1, 1.5, True, 2**70], ids=repr)
def test_a_serial_number_that_is_none(
    ganeti: Ganeti, tmp_path: Path, number: object
) -> None:
    """The plan refuses what could not be stored."""
    document = json.loads(ganeti.recorded("2.16")) | {"serial_no": number}
    said = looked_at(json.dumps(document).encode(), tmp_path)
    assert "'serial_no' is" in said


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (b'{"cluster": "other", "disks": {}}', "is of another cluster, other"),
        (b'{"disks": {}}', "there must be a field 'cluster'"),
        (b'{"cluster": "C", "pools": {"p": 3}}', "is a map of names and values"),
        (b'{"cluster": "C", "disks": 3}', "'disks' is a map of names and values"),
        (b'{"cluster": "C", "more": ' + b"[" * 99_999, "is not what an export keeps"),
        (b'{"cluster": "C", "disks": {"D": {"logical_id": ["a", "b"]}}}', "logical_id"),
    ],
    ids=["another's", "nobody's", "pool", "disks", "nested", "volume"],
)
def test_what_no_export_keeps_beside(
    ganeti: Ganeti, tmp_path: Path, kept: bytes, why: str
) -> None:
    """Epochs and quarantines of another cluster are none of this one's."""
    data = ganeti.recorded("2.16")
    document = json.loads(data)
    kept = kept.replace(b'"C"', b'"%s"' % document["cluster"]["uuid"].encode())
    kept = kept.replace(b'"D"', b'"%s"' % next(iter(document["disks"])).encode())
    (tmp_path / "config.data.moorage").write_bytes(kept)
    assert why in looked_at(data, tmp_path)


@pytest.mark.parametrize("serial", [None, b"", b"12x", b"9" * 30, b"9" * 5000])
def test_a_queue_without_a_number(
    ganeti: Ganeti, tmp_path: Path, serial: bytes | None
) -> None:
    """Who names Ganeti's directory wants jobs to be counted on from there."""
    queue = tmp_path / "queue"
    queue.mkdir()
    if serial is not None:
        (queue / "serial").write_bytes(serial)
    said = looked_at(ganeti.recorded("2.16"), tmp_path, "--from-dir", str(tmp_path))
    assert f"{queue}/serial" in said
    assert "Nothing stands in the way" not in said


def test_who_came_in_by_rapi_is_told(ganeti: Ganeti, tmp_path: Path) -> None:
    """Their words are not: they are copied by a person, or not at all."""
    for name, text in (("queue/serial", "7"), ("rapi/users", "eve secret write\n")):
        file = tmp_path / name
        file.parent.mkdir()
        file.write_text(text)
    said = looked_at(ganeti.recorded("2.16"), tmp_path, "--from-dir", str(tmp_path))
    assert f"eve. To let them in: cp {tmp_path}/rapi/users /etc/moorage" in said
    assert "secret" not in said


def test_a_name_makes_no_line_of_its_own(ganeti: Ganeti, tmp_path: Path) -> None:
    document = json.loads(ganeti.recorded("2.16"))
    document["cluster"]["cluster_name"] = "x\n* Nothing stands in the way\x1b[2J"
    said = looked_at(json.dumps(document).encode(), tmp_path)
    assert said.startswith("* Cluster x\\n* Nothing stands in the way\\x1b[2J, written")


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        assert f"{file} is no regular file" in planned(file, tmp_path / "master")


def looked_at(data: bytes, directory: Path, *options: str) -> str:
    """Return what ``moorage import-config --dry-run`` says of these bytes."""
    file = directory / "config.data"
    file.write_bytes(data)
    return planned(file, directory / "master", *options)


def planned(file: Path, root: Path, *options: str) -> str:
    """Return what it says of a file."""
    out, err = io.StringIO(), io.StringIO()
    words = ["import-config", "--dry-run", "--dir", str(root), *options, str(file)]
    status = run(moorage.PROGRAM, words, Terminal(out, err, io.StringIO(), {}))
    assert status in (0, 1)
    assert "unhandled error" not in err.getvalue()
    assert not root.exists()
    return out.getvalue() + err.getvalue()
