# SPDX-License-Identifier: BSD-2-Clause
"""Option values in Ganeti's syntax."""

import pytest

from moorage.cli.gnt_instance.disk_options import changes, disk_option, new_disks
from moorage.cli.option_syntax import (
    backend_parameters,
    ident_key_values,
    key_values,
    split,
)
from moorage.errors import BadInput


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a=1,b=x=y", {"a": "1", "b": "x=y"}),
        (r"a=1\,2,b=3", {"a": "1,2", "b": "3"}),
        ("boot,no_trim,-cache", {"boot": True, "trim": False, "cache": None}),
        ("a=", {"a": ""}),
        ("a=no_x,b=-y", {"a": "no_x", "b": "-y"}),
    ],
)
def test_key_values(text: str, found: dict[str, object]) -> None:
    assert key_values(text) == found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b", ["a", "b"]),
        (r"a\,b", ["a,b"]),
        (r"a\\,b", ["a\\", "b"]),
        ("a\\", ["a\\"]),
    ],
)
def test_split(text: str, parts: list[str]) -> None:
    assert split(text) == parts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0:size=1G", ("0", {"size": "1G"})),
        ("kvm", ("kvm", {})),
        (
            "0:adopt=/dev/disk/by-path/pci-0:0",
            ("0", {"adopt": "/dev/disk/by-path/pci-0:0"}),
        ),
        ("-1:add", ("-1", {"add": True})),
    ],
)
def test_the_first_colon_splits(text: str, found: tuple[str, object]) -> None:
    assert ident_key_values(text) == found


@pytest.mark.parametrize("text", ["a=1,a=2", "a=1,a", "=1", ":a=1"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        ident_key_values(text if text.startswith(":") else f"0:{text}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("memory=1G,vcpus=2", {"minmem": 1024, "maxmem": 1024, "vcpus": 2}),
        ("memory=1G,maxmem=2G", {"minmem": 1024, "maxmem": 2048}),
        ("no_auto_balance", {"auto_balance": False}),
        (
            "always_failover=yes,vcpus=default",
            {"always_failover": True, "vcpus": "default"},
        ),
        ("-vcpus", {"vcpus": "default"}),
    ],
)
def test_backend_parameters(text: str, found: dict[str, object]) -> None:
    assert backend_parameters(text) == found


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mem=1G", "no back-end parameter 'mem'"),
        ("vcpus=two", "'two' does not fit the parameter 'vcpus'"),
        ("memory=lots", "'lots' is not a size"),
    ],
)
def test_wrong_backend_parameters(text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        backend_parameters(text)


# -- --disk of gnt-instance add --------------------------------------------------------


@pytest.mark.requirement("S0-60")
def test_a_provider_gets_its_parameters_as_they_were_typed() -> None:
    option = disk_option(r"0:size=1001,provider=p,param1=v1,param2=a\,b,boot,no_trim")
    assert new_disks([option]) == [
        {
            "size": 1004,
            "provider": "p",
            "param1": "v1",
            "param2": "a,b",
            "boot": "True",
            "trim": "False",
        }
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["x:size=1G"], "'x' is not a disk's number"),
        (["0:size=1G", "0:size=2G"], "--disk 0 is given twice"),
        (["1:size=1G"], "disk 0 is left out"),
        (["0:size=1G", "2:size=1G"], "disk 1 is left out"),
        (["0:name=a"], "disk 0 has no size"),
        (["0:size=big"], "disk 0: 'big' is not a size"),
        (["0:size=1G,adopt=/dev/disk/x"], "only one of these goes"),
        (["0:size=1G,spindles=x"], "not a number of spindles"),
    ],
)
def test_wrong_new_disks(options: list[str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        new_disks([disk_option(option) for option in options])


# -- --disk of gnt-instance modify -----------------------------------------------------


@pytest.mark.requirement("S3-39", "S3-40", "S3-41", "S3-42", "S3-43")
@pytest.mark.parametrize(
    ("option", "change"),
    [
        ("add:size=1G", ("add", -1, {"size": 1024})),
        ("0:add,size=1G", ("add", 0, {"size": 1024})),
        ("-1:add,adopt=/dev/disk/x", ("add", -1, {"adopt": "/dev/disk/x"})),
        ("attach,name=data1", ("attach", -1, {"name": "data1"})),
        ("attach,uuid=1-2", ("attach", -1, {"uuid": "1-2"})),
        ("attach:name=data1", ("attach", -1, {"name": "data1"})),
        ("2:attach,uuid=1-2", ("attach", 2, {"uuid": "1-2"})),
        ("0:attach,name=data1", ("attach", 0, {"name": "data1"})),
        ("detach", ("detach", -1, {})),
        ("remove", ("remove", -1, {})),
        ("1:detach", ("detach", 1, {})),
        ("data1:detach", ("detach", "data1", {})),
        ("4f-1:detach", ("detach", "4f-1", {})),
        ("1:remove", ("remove", 1, {})),
        ("data1:remove", ("remove", "data1", {})),
        ("1:modify,mode=ro", ("modify", 1, {"mode": "ro"})),
        ("1:mode=ro,key", ("modify", 1, {"mode": "ro", "key": "True"})),
        (
            "data1:key=default,-old",
            ("modify", "data1", {"key": "default", "old": "default"}),
        ),
    ],
)
def test_changes(option: str, change: tuple[object, ...]) -> None:
    assert changes([disk_option(option)]) == [change]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("1:add,remove", "asks for add and remove"),
        ("add", "has no size"),
        ("1:attach,size=big", "disk 1: 'big' is not a size"),
    ],
)
def test_wrong_changes(option: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        changes([disk_option(option)])
