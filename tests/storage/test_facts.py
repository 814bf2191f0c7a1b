# SPDX-License-Identifier: BSD-2-Clause
"""The table of templates, and those who read it."""

import pytest
from msgspec.structs import fields

from moorage.disk_templates import FACTS, driven, standing_for
from moorage.errors import BadInput
from moorage.htools import constants
from moorage.htools.formats import sunit
from moorage.model import Cluster
from moorage.model.ipolicy import DEFAULT
from moorage.storage import TEMPLATES

FIELDS = {one.name for one in fields(Cluster)}
NINE = ["diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd"]
NINE += ["ext", "gluster"]  # Ganeti's; others come after them


def test_what_is_driven_has_a_class_and_the_cluster_its_settings() -> None:
    assert {*TEMPLATES, "diskless"} == {*driven()}
    for name, kind in TEMPLATES.items():
        facts = kind.capabilities.facts
        assert facts is FACTS[name]
        assert kind.name == name
        assert {*facts.settings} <= FIELDS
        assert all(one.meaning for one in facts.parameters)


def test_the_policy_of_a_new_cluster_names_them_in_order() -> None:
    assert DEFAULT["disk-templates"][: len(NINE)] == [
        "sharedfile",
        "ext",
        "blockdev",
        "file",
        "diskless",
        "plain",
        "rbd",
        "drbd",
        "gluster",
    ]


def test_the_planner_knows_all_nine_as_ganeti_does() -> None:
    assert list(constants.TEMPLATES)[: len(NINE)] == NINE
    assert constants.SPELLINGS["drbd8"] == constants.PAIRED == "drbd"
    facts = [FACTS[name] for name in NINE]
    assert {one.name for one in facts if one.node_disk} == {"drbd", "plain"}
    still = {one.name for one in facts if not one.movable}
    assert still == {"diskless", "file", "plain"}
    assert {one.name: one.unit for one in facts if one.unit and not one.pooled} == {
        "drbd": "drbd8",
        "plain": "lvm-vg",
        "file": "file",
        "sharedfile": "sharedfile",
    }
    assert {one.name for one in facts if one.pooled} == {"ext", "rbd", "gluster"}
    kinds = {one.unit for one in facts} - {""}
    shared = {kind for kind in kinds if sunit.unit((kind, "k"), 1, 1).shared}
    assert shared == {"sharedfile", "gluster", "rbd", "ext"}
    assert sunit.unit_name(("drbd", "xenvg")) == ("drbd8", "xenvg")


@pytest.mark.parametrize(
    ("names", "one"),
    [
        (["ext", "sharedfile"], "ext"),
        (["ext", "file"], "file"),
        (["drbd", "ext"], "drbd"),
        (["drbd", "plain"], "plain"),
        (["blockdev", "rbd"], "ext"),
        ([], "file"),
    ],
)
def test_disks_of_several_count_by_what_they_can_do(names: list[str], one: str) -> None:
    assert standing_for(names) == one


def test_a_parameter_is_read_as_the_table_says() -> None:
    file = TEMPLATES["file"]
    assert file.parameters({"preallocate": "yes"}) == {"preallocate": True}
    with pytest.raises(BadInput, match="is yes or no, not 'perhaps'"):
        file.parameters({"preallocate": "perhaps"})
    with pytest.raises(BadInput, match="template 'file' has no parameter 'vg'"):
        file.parameters({"preallocate": "yes", "vg": "x"})


def test_who_names_a_parameter_that_there_is_not_is_told_those_that_are() -> None:
    with pytest.raises(BadInput) as caught:
        TEMPLATES["plain"].parameters({"size": "1"})
    assert "it has: vg (The volume group" in caught.value.hint
    assert "stripes (Over how many physical volumes" in caught.value.hint
