# SPDX-License-Identifier: BSD-2-Clause
"""Disk templates: names, parameters, declared facts; no command runs."""

import dataclasses
from typing import Any

import pytest

from moorage.disk_templates import FACTS
from moorage.errors import BadInput, NotFound, NotSupported
from moorage.model import Disk
from moorage.storage import (
    TEMPLATES,
    Can,
    Mirror,
    Reach,
    Site,
    VolumeRequest,
    Where,
    metadata,
    template_named,
)
from moorage.units import Mib

BORN = VolumeRequest(
    unique="f00",
    index=2,
    instance="web1",
    settings={
        "file_storage_dir": "/srv/file",
        "shared_file_storage_dir": "/srv/shared",
    },
    params={"provider": "nas", "adopt": "/dev/disk/by-id/lun1"},
)


@pytest.mark.parametrize(
    ("template", "identity"),
    [
        ("file", ("loop", "/srv/file/web1/f00.file.disk2")),
        pytest.param(
            "sharedfile",
            ("loop", "/srv/shared/web1/f00.sharedfile.disk2"),
            marks=pytest.mark.requirement("S0-01", "S0-17"),
        ),
        pytest.param(
            "blockdev",
            ("manual", "/dev/disk/by-id/lun1"),
            marks=pytest.mark.requirement("S0-02"),
        ),
        pytest.param(
            "ext",
            ("nas", "/dev/disk/by-id/lun1"),
            marks=pytest.mark.requirement("S0-38", "S0-59"),
        ),
    ],
)
def test_the_identity_of_a_new_volume(template: str, identity: tuple[str, ...]) -> None:
    assert template_named(template).logical_id(BORN) == identity


def test_the_identity_of_a_volume_that_a_provider_makes() -> None:
    born = dataclasses.replace(BORN, params={"provider": "nas"})
    assert template_named("ext").logical_id(born) == ("nas", "f00.ext.disk2")


@pytest.mark.parametrize(
    ("template", "given", "said"),
    [
        ("sharedfile", {"settings": {}}, "no directory is configured"),
        ("sharedfile", {"instance": "../../etc"}, "lies outside of /srv/shared"),
        ("file", {"unique": "../../../etc/x"}, "lies outside of /srv/file"),
        ("blockdev", {"params": {}}, "it adopts devices"),
        ("ext", {"params": {}}, "Missing provider for template 'ext'"),
        ("ext", {"params": {"provider": "../x"}}, "'../x' is not a valid name"),
    ],
)
@pytest.mark.requirement("S0-58")
def test_no_volume_without_what_it_takes(
    template: str, given: dict[str, Any], said: str
) -> None:
    values = {name: getattr(BORN, name) for name in VolumeRequest.__slots__} | given
    with pytest.raises(BadInput, match=said):
        template_named(template).logical_id(VolumeRequest(**values))


@pytest.mark.requirement("S0-20")
@pytest.mark.parametrize("device", ["/dev/sda", "/dev/disk/../sda", "/dev/disk/", "x"])
def test_only_devices_with_one_name_everywhere_are_adopted(device: str) -> None:
    with pytest.raises(BadInput) as caught:
        template_named("blockdev").logical_id(
            VolumeRequest(unique="f00", params={"adopt": device})
        )
    assert caught.value.message == (
        f"Device node(s) {device} lie outside /dev/disk/ and cannot be adopted"
    )


def test_a_disk_of_nobody_has_a_place_too() -> None:
    born = VolumeRequest(unique="f00", settings={"file_storage_dir": "/srv/file"})
    path = "/srv/file/detached/f00.file.disk0"
    assert template_named("file").logical_id(born) == ("loop", path)


# -- parameters ------------------------------------------------------------------------


@pytest.mark.requirement("S0-58")
@pytest.mark.parametrize("template", ["file", "sharedfile", "blockdev"])
def test_the_provider_belongs_to_ext(template: str) -> None:
    with pytest.raises(BadInput) as caught:
        template_named(template).parameters({"provider": "nas"})
    assert caught.value.message == (
        f"The 'provider' option is only valid for the ext disk template, not {template}"
    )


@pytest.mark.requirement("S0-58")
def test_ext_wants_a_provider() -> None:
    with pytest.raises(BadInput) as caught:
        template_named("ext").parameters({"tier": "ssd"})
    assert caught.value.message == "Missing provider for template 'ext'"


@pytest.mark.requirement("S0-60", "S0-61")
def test_ext_keeps_what_it_is_given_as_text() -> None:
    given = {"provider": "nas", "param1": "v1", "copies": 2, "thin": True, "x": ""}
    assert template_named("ext").parameters(given) == {
        "provider": "nas",
        "param1": "v1",
        "copies": "2",
        "thin": "True",
        "x": "",
    }


@pytest.mark.requirement("S0-59")
def test_two_disks_may_have_two_providers() -> None:
    ext = template_named("ext")
    made = [
        ext.logical_id(VolumeRequest(unique="f", params={"provider": p})) for p in "ab"
    ]
    assert made == [("a", "f.ext.disk0"), ("b", "f.ext.disk0")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"access": "both"}, "access is kernelspace or userspace, not 'both'"),
        ({"a b": "1"}, "'a b' is not a valid name of a parameter"),
        ({"a=b": "1"}, "'a=b' is not a valid name of a parameter"),
        ({"tier": "1", "TIER": "2"}, "two parameters would both be EXTP_TIER"),
        ({"tier": ["ssd"]}, "the value of parameter 'tier' is not plain text"),
        ({"tier": "a\0b"}, "holds a null character"),
        ({"adopt": "x"}, "what is adopted is no parameter of a provider"),
        ({"ADOPT": "x"}, "what is adopted is no parameter of a provider"),
    ],
)
def test_ext_refuses_what_no_script_could_read(given: Any, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        template_named("ext").parameters({"provider": "nas", **given})
    assert said in caught.value.message


@pytest.mark.parametrize(("word", "kept"), [("yes", True), (True, True), ("no", False)])
def test_a_file_may_be_preallocated(word: object, kept: bool) -> None:
    for template in ("file", "sharedfile"):
        found = template_named(template).parameters({"preallocate": word})
        assert found == {"preallocate": kept}


@pytest.mark.parametrize(
    ("template", "given", "said"),
    [
        ("file", {"preallocate": "perhaps"}, "is yes or no, not 'perhaps'"),
        ("file", {"tier": "ssd"}, "disk template 'file' has no parameter 'tier'"),
        ("blockdev", {"tier": "x"}, "disk template 'blockdev' has no parameter 'tier'"),
        ("sharedfile", {"adopt": "/x"}, "'sharedfile' cannot adopt a volume"),
    ],
)
def test_a_parameter_that_is_not_there_is_named(
    template: str, given: dict[str, str], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        template_named(template).parameters(given)


def test_an_adopted_device_leaves_no_parameter() -> None:
    found = template_named("blockdev").parameters({"adopt": "/dev/disk/by-id/x"})
    assert found == {}


# -- declared facts --------------------------------------------------------------------


@pytest.mark.requirement("S0-03", "S0-07", "S0-08", "S0-09")
def test_who_mirrors_what_is_declared() -> None:
    by = {
        kind: [one.name for one in FACTS.values() if one.mirror is kind]
        for kind in Mirror
    }
    assert by[Mirror.INTERNAL] == ["drbd"]
    shared = {"blockdev", "diskless", "ext", "gluster", "rbd", "sharedfile"}
    assert {*by[Mirror.EXTERNAL]} == shared
    assert template_named("file").capabilities.mirror is Mirror.NONE


@pytest.mark.requirement("S0-11")
def test_shared_storage_is_reached_by_the_whole_group() -> None:
    reach = {name: one.capabilities.reach for name, one in TEMPLATES.items()}
    assert (reach["file"], reach["plain"]) == (Reach.NODE, Reach.NODE)
    assert reach["drbd"] is Reach.PAIR
    shared = ("blockdev", "ext", "gluster", "rbd", "sharedfile")
    assert {reach[name] for name in shared} == {Reach.GROUP}


@pytest.mark.requirement("S0-19")
def test_a_block_device_can_be_adopted_and_nothing_else() -> None:
    assert template_named("blockdev").capabilities.can == Can.ADOPT


def test_a_verb_is_there_if_it_is_declared() -> None:
    site = Site(
        node="n",
        settings={"file_storage_dir": "/f", "shared_file_storage_dir": "/f"},
    )
    for template in TEMPLATES.values():
        bound, can = template(site), template.capabilities.can
        disk = Disk(uuid="u", dev_type="x", logical_id=("a", "/f/b"), size=Mib(4))
        verbs = {
            Can.CREATE: lambda b=bound, d=disk: b.create(d),
            Can.GROW: lambda b=bound, d=disk: b.grow(d, Mib(8)),
            Can.SNAPSHOT: lambda b=bound, d=disk: b.snapshot(d, "s", Mib(4)),
        }
        for what, verb in verbs.items():
            if what not in can:
                with pytest.raises(NotSupported, match="cannot"):
                    verb()


def test_an_unknown_template_is_answered_with_the_known_ones() -> None:
    with pytest.raises(NotFound) as caught:
        template_named("floppy")
    assert caught.value.message == "no disk template is called 'floppy'"
    assert caught.value.hint == f"known are: {', '.join(sorted(TEMPLATES))}"


@pytest.mark.parametrize("template", ["file", "sharedfile", "ext"])
def test_a_snapshot_is_a_volume_beside_its_origin(template: str) -> None:
    identity = ("nas", "v.ext.disk0") if template == "ext" else ("loop", "/f/a/v")
    disk = Disk(uuid="u", dev_type=template, logical_id=identity, size=Mib(4))
    there = {"ext": ("nas", "v.snap")}.get(template, ("loop", "/f/a/v.snap"))
    assert template_named(template).snapshot_id(disk, "v.snap") == there


@pytest.mark.requirement("S0-46")
def test_the_note_beside_a_volume_is_plain() -> None:
    assert metadata("web1.example.com") == "originstname+web1.example.com"
    assert metadata("a b\n") == "originstname+a_b_"
    assert len(metadata("x" * 300)) == 128


# -- where a disk is -------------------------------------------------------------------

BOTH = Where(path="/dev/x", block=True, uris={"kvm": "rbd:p/x", "xen-pvm": "phy:x"})


@pytest.mark.requirement("S0-65", "S0-68", "S0-74")
def test_a_uri_is_preferred_if_userspace_is_wanted() -> None:
    assert BOTH.for_hypervisor("KVM", userspace=True) == "rbd:p/x"
    assert BOTH.for_hypervisor("xen-pvm", userspace=True) == "phy:x"
    assert BOTH.for_hypervisor("kvm", userspace=False) == "/dev/x"
    only = Where(uris={"kvm": "rbd:p/x"})
    assert only.for_hypervisor("kvm", userspace=False) == "rbd:p/x"


@pytest.mark.requirement("S0-71")
def test_a_hypervisor_without_a_way_is_told() -> None:
    with pytest.raises(NotSupported, match="no userspace access to the lxc hypervisor"):
        BOTH.for_hypervisor("lxc", userspace=True)
    with pytest.raises(NotSupported, match="neither a device nor a URI for lxc"):
        Where(uris={"kvm": "x:y"}).for_hypervisor("lxc", userspace=False)
