# SPDX-License-Identifier: BSD-2-Clause
"""Volumes that were there before their disks: nothing but a removal destroys them."""

import json
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest
import yaml

from moorage.storage import Command
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.machine import NAMED
from moorage.testing.served import Served, served

Types = Callable[..., str]
MODIFY = "OP_INSTANCE_SET_PARAMS"
NEW = "gnt-instance modify --disk add:size=64M,dev_type=ext,provider=named,name="


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder().instance("web1")) as found:
        for node in found.cluster.nodes.nodes.values():
            node.machine.installed += NAMED
        yield found


def volumes(sim: Served) -> dict[str, dict[str, object]]:
    return sim.cluster.nodes.san.volumes


def theirs(sim: Served, name: str = "mine", **more: object) -> dict[str, object]:
    """Put a volume there, with data that nobody may lose."""
    found = {"size": 64, "provider": "named", "data": "precious", **more}
    volumes(sim)[name] = found
    return found


def environments(sim: Served, script: str) -> list[dict[str, str]]:
    """Return what each run of a script saw, in order."""
    return [
        dict(command.env)
        for node in sim.cluster.nodes.nodes.values()
        for command in node.machine.ran
        if PurePosixPath(command.argv[0]).name == script
    ]


def ran(sim: Served, script: str) -> int:
    return len(environments(sim, script))


# -- reuse_data=True -------------------------------------------------------------------


def test_what_is_reused_outlives_a_later_step_that_fails(
    types: Types, sim: Served
) -> None:
    """Written, let go with its data, and added again beside a disk that fails."""
    types(f"{NEW}mine,reuse_data=False web1")
    volumes(sim)["mine"] |= {"data": "precious"}
    removal = {"disks": [["remove", "0", {}]], "keep_disks": True}
    sim.inside(lambda it: it.run(MODIFY, instance_name="web1", **removal))
    theirs(sim, "taken")
    again = "--disk add:size=64M,dev_type=ext,provider=named,name=mine,reuse_data=True"
    bad = "--disk add:size=64M,dev_type=ext,provider=named,name=taken,reuse_data=False"
    told = types(f"gnt-instance modify {again} {bad} web1", status=1)
    assert "volume taken is there already" in told
    assert volumes(sim)["mine"]["data"] == "precious"
    assert volumes(sim)["taken"]["data"] == "precious"
    assert ran(sim, "remove") == 0
    types(f"gnt-instance modify {again} web1")
    assert volumes(sim)["mine"]["data"] == "precious"
    assert environments(sim, "create")[-1]["EXTP_REUSE_DATA"] == "True"
    (told,) = yaml.safe_load(types("gnt-disk info mine"))
    assert told["Adopted"].startswith("yes")
    types("gnt-instance modify --disk 0:remove web1")
    assert "mine" not in volumes(sim)


@pytest.mark.parametrize("word", ["reuse_data=True", "Reuse_Data=yes", "adopt=mine"])
@pytest.mark.parametrize("provider", ["named", "namedlist"])
def test_a_new_instance_that_fails_destroys_nothing_that_it_adopts(
    types: Types, sim: Served, word: str, provider: str
) -> None:
    """One provider lists the parameter and is told; the other makes nothing."""
    kept = theirs(sim, provider=provider)
    failing = "1:size=64M,dev_type=ext,provider=plainsan,name=two"
    sim.cluster.nodes.nodes["node1"].machine.refuse = _refusing("create", of="plainsan")
    told = types(
        f"gnt-instance add -n node1 --no-start --disk 0:size=64M,dev_type=ext,"
        f"provider={provider},name=mine,{word} --disk {failing} w2",
        status=1,
    )
    assert "create" in told
    assert volumes(sim) == {"mine": kept | {"note": volumes(sim)["mine"]["note"]}}
    assert ran(sim, "remove") == 0
    assert ran(sim, "create") == (2 if provider == "named" else 1)


def _refusing(*scripts: str, of: str = "") -> Callable[[str, Command], bool]:
    def refuse(_node: str, command: Command) -> bool:
        script = PurePosixPath(command.argv[0])
        return script.name in scripts and of in (script.parent.name, "")

    return refuse


# -- adopt=NAME ------------------------------------------------------------------------


def test_a_volume_is_adopted_by_its_name_and_starts_with_an_epoch(
    types: Types, sim: Served
) -> None:
    theirs(sim, "lun7", provider="san", size=128)
    types("gnt-disk add -t ext -p san --adopt lun7 --epoch 12 data1")
    shown = "gnt-disk list --no-headers -o size,epoch,volume,adopted"
    assert types(f"{shown} data1").split() == ["128M", "12", "lun7", "Y"]
    assert {env["VOL_EPOCH"] for env in environments(sim, "attach")} == {"12"}
    assert ran(sim, "create") == 0
    types("gnt-disk attach data1 web1")
    assert types("gnt-disk list --no-headers -o epoch data1") == "13\n"
    types("gnt-disk detach data1")
    types("gnt-disk remove -f data1")
    assert "lun7" not in volumes(sim)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("add -t ext -p san --adopt none data1", "has no volume 'none'"),
        ("add -t ext -p plainsan --adopt lun7 data1", "how large volume 'lun7' is"),
        ("add -t ext -p san -s 1G --epoch 3 data1", "only an adopted one"),
        ("add -t ext -p san -s 1G --adopt 'a b' data1", "not a name of a provider's"),
        ("add -t ext -p san -s 1G -D adopt=lun7 data1", "is no parameter"),
        ("convert -t ext -p named -D reuse_data=True old", "keeps what a volume holds"),
        (
            "clone -t ext -p named -D reuse_data=True --name new old",
            "keeps what a volume holds",
        ),
        ("add -t ext -p named -s 1G -D reuse_data=perhaps d", "is yes or no"),
    ],
)
def test_what_cannot_be_adopted(
    types: Types, sim: Served, line: str, told: str
) -> None:
    types("gnt-disk add -t ext -p san -s 64M old")
    theirs(sim, "lun7", provider="plainsan")
    assert told in types(f"gnt-disk {line}", status=1)
    assert volumes(sim)["lun7"]["data"] == "precious"


def test_one_volume_is_one_disk_by_whatever_name(types: Types, sim: Served) -> None:
    theirs(sim, provider="named")
    types("gnt-disk add -t ext -p named -s 64M -D reuse_data=True mine")
    told = types("gnt-disk add -t ext -p named -s 64M --adopt mine two", status=1)
    assert "is disk mine already" in told
    twice = "add:adopt=x,size=64M,dev_type=ext,provider=plainsan"
    told = types(f"gnt-instance modify --disk {twice} --disk {twice} web1", status=1)
    assert "volume x is named twice" in told


def test_gnt_disk_adopt_takes_an_epoch_too(types: Types, sim: Served) -> None:
    theirs(sim, "lun7", provider="san")
    types("gnt-disk adopt -t ext -p san --name data1 --epoch 5 lun7")
    shown = types("gnt-disk list --no-headers -o epoch,adopted data1")
    assert shown.split() == ["5", "Y"]


# -- what comes after ------------------------------------------------------------------


def test_what_is_converted_leaves_the_adopted_volume(types: Types, sim: Served) -> None:
    kept = theirs(sim, "lun7", provider="san")
    types("gnt-disk add -t ext -p san --adopt lun7 data1")
    types("gnt-disk convert -t sharedfile data1")
    assert volumes(sim)["lun7"]["data"] == kept["data"]
    left = json.loads(types("gnt-disk list --json -o uuid,volume,adopted,status"))
    found = {one["volume"]: one for one in left}
    assert (found["lun7"]["adopted"], found["lun7"]["status"]) == (True, "detached")
    types(f"gnt-disk remove -f {found['lun7']['uuid']}")
    assert "lun7" not in volumes(sim)


def test_a_copy_of_what_is_adopted_is_made_and_not_adopted(
    types: Types, sim: Served
) -> None:
    theirs(sim, provider="named")
    types("gnt-disk add -t ext -p named -s 64M -D reuse_data=True mine")
    types("gnt-disk clone mine --name copy")
    assert types("gnt-disk list --no-headers -o adopted copy") == "N\n"
    assert "EXTP_REUSE_DATA" not in environments(sim, "create")[-1]
    assert set(volumes(sim)) == {"mine", "copy"}


def test_no_pool_presets_that_volumes_are_there(types: Types) -> None:
    add = "gnt-storage pool add -p named -D reuse_data=True p1"
    assert "no pool presets it" in types(add, status=1)
    types("gnt-storage pool add -p named p2")
    told = types("gnt-storage pool modify -D reuse_data=True p2", status=1)
    assert "no pool presets it" in told
