# SPDX-License-Identifier: BSD-2-Clause
"""What makes a provider valid: on a node, in a group, for a disk."""

import pytest

from moorage.errors import BadInput
from moorage.model import Provider
from moorage.storage import Command, Opened, Site
from moorage.storage.provider import (
    BY_UUID,
    OPTIONAL,
    PARAMETERS,
    SCRIPTS,
    SEARCH_PATH,
    FileFact,
    check_parameters,
    common_parameters,
    judge,
    parse_parameters,
    unreadable,
    unusable,
    usable,
    valid_for_group,
)
from moorage.storage.templates.ext import Ext

SCRIPT = FileFact(regular=True, executable=True)
TEXT = FileFact(regular=True)
GONE = FileFact(missing="No such file or directory")
MISSING = "is missing (No such file or directory)"
WHOLE = dict.fromkeys((*SCRIPTS, *OPTIONAL), SCRIPT) | {PARAMETERS: TEXT, BY_UUID: GONE}


@pytest.mark.requirement(
    "S0-22", "S0-25", "S0-26", "S0-27", "S0-28", "S0-29", "S0-30", "S0-35"
)
def test_a_whole_provider() -> None:
    found = judge("nas", "/e/nas", WHOLE, "tier  ssd or hdd\n")
    assert found == Provider(
        name="nas",
        path="/e/nas",
        optional=tuple(OPTIONAL),
        parameters={"tier": "ssd or hdd"},
    )
    assert found.valid


def test_a_provider_may_say_that_it_knows_volumes_by_uuid() -> None:
    assert judge("nas", "/e/nas", WHOLE | {BY_UUID: TEXT}, "").by_uuid
    assert not judge("nas", "/e/nas", WHOLE, "").by_uuid


@pytest.mark.requirement("S0-32", "S0-33", "S0-34", "S0-53", "S0-66")
def test_a_provider_of_the_first_interface_is_valid() -> None:
    files = WHOLE | dict.fromkeys(OPTIONAL, GONE)
    found = judge("nas", "/e/nas", files, "")
    assert found.valid
    assert found.optional == ()


@pytest.mark.parametrize(
    ("name", "fact", "problem"),
    [
        *[(name, GONE, MISSING) for name in (*SCRIPTS, PARAMETERS)],
        ("grow", FileFact(), "is not a regular file"),
        (PARAMETERS, FileFact(), "is not a regular file"),
        ("attach", TEXT, "is not executable"),
        ("snapshot", TEXT, "is not executable"),
    ],
)
@pytest.mark.requirement("S0-22")
def test_what_is_wrong_is_said_in_ganetis_words(
    name: str, fact: FileFact, problem: str
) -> None:
    found = judge("nas", "/e/nas", WHOLE | {name: fact}, "")
    assert found.problem == f"File '{name}' under path '/e/nas' {problem}"


def test_the_other_problems() -> None:
    assert unusable("x", "/e/x").problem == (
        "Directory for External Storage Provider x not found in search path"
    )
    assert unreadable("x", "/e/x", "Input/output error").problem == (
        "Error while reading the EXT parameters file at /e/x/parameters.list: "
        "Input/output error"
    )


def test_a_list_of_parameters_is_read_leniently() -> None:
    listed = "tier\tssd or hdd \n\n  \nusp_*\nname  what  it is\n"
    assert parse_parameters(listed) == {
        "tier": "ssd or hdd",
        "usp_*": "",
        "name": "what  it is",
    }


def test_the_search_path_is_the_one_of_providers_in_the_wild() -> None:
    assert SEARCH_PATH[-1] == "/usr/share/ganeti/extstorage"
    assert len(SEARCH_PATH) == 4


@pytest.mark.requirement("S0-22")
def test_the_first_directory_wins() -> None:
    first = Provider(name="nas", path="/a/nas", problem="File 'grow' …")
    second = Provider(name="nas", path="/b/nas")
    stray = unusable("lvm", "/a/lvm")
    real = Provider(name="lvm", path="/b/lvm")
    odd = unusable("a b", "/a/a b")
    chosen = usable([first, stray, odd, second, real])
    assert chosen == {"nas": first, "lvm": real}


# -- in a group ------------------------------------------------------------------------

GOOD = {"nas": Provider(name="nas", path="/e/nas", parameters={"a": "A", "b": "B"})}
LESS = {"nas": Provider(name="nas", path="/e/nas", parameters={"b": "B", "c": "C"})}
BAD = {"nas": Provider(name="nas", path="/e/nas", problem="File …")}


@pytest.mark.requirement("S0-23", "S0-24")
def test_a_group_has_what_all_its_nodes_have() -> None:
    assert valid_for_group({"n1": GOOD, "n2": LESS}, "nas")
    assert not valid_for_group({"n1": GOOD, "n2": {}}, "nas")
    assert not valid_for_group({"n1": GOOD, "n2": BAD}, "nas")
    assert not valid_for_group({}, "nas")


def test_parameters_are_those_of_every_valid_node() -> None:
    found = [one["nas"] for one in (GOOD, LESS, BAD)]
    assert common_parameters(found) == {"b": "B"}
    assert common_parameters([BAD["nas"]]) == {}


# -- for a disk ------------------------------------------------------------------------

RBD = Provider(name="rbd", path="/e/rbd", parameters={"pool": "", "usp_*": ""})


@pytest.mark.requirement("S0-62")
@pytest.mark.parametrize("name", ["pool", "POOL", "usp_x", "provider", "access"])
def test_a_listed_parameter_is_accepted(name: str) -> None:
    check_parameters({name: "x"}, RBD)


@pytest.mark.requirement("S0-62")
def test_an_unlisted_parameter_is_refused_with_those_that_are_listed() -> None:
    with pytest.raises(BadInput) as caught:
        check_parameters({"pool": "x", "tier": "ssd"}, RBD)
    assert caught.value.message == (
        "ExtStorage provider 'rbd' has no parameter 'tier': it takes pool, usp_*"
    )
    assert caught.value.facts["unknown"] == ["tier"]
    check_parameters({"tier": "ssd"}, RBD, force=True)


@pytest.mark.requirement("S0-62")
def test_a_provider_without_parameters_takes_none() -> None:
    with pytest.raises(BadInput, match="it takes no parameters"):
        check_parameters({"x": "1"}, Provider(name="nas", path="/e/nas"))


@pytest.mark.parametrize("name", ["dir", "DIR", "Dir"])
def test_a_directory_is_opened_by_the_node_however_its_parameter_is_written(
    name: str,
) -> None:
    """A script sees EXTP_DIR in any case, and may take it for lack of VOL_AT_DIR."""
    nas = Provider(name="nas", path="/x/nas", optional=("list",), places=("dir",))
    ext = Ext(Site(node="node1", providers={"nas": nas}))
    asked = next(ext.volumes({"provider": "nas", name: "/etc"}))
    assert isinstance(asked, Command)
    assert asked.env["EXTP_DIR"] == "/etc"
    assert asked.env["VOL_AT_DIR"] == "/etc/."
    assert asked.images == {"/etc/.": Opened.PLACE}
