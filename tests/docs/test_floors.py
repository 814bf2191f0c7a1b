# SPDX-License-Identifier: BSD-2-Clause
"""The drawings of floors are made from the imports, and say what they say."""

import floors
import pytest

PACKAGES = ("moorage", "moorage.ops", "moorage.node", "moorage.htools")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_stands_in_the_drawing(package):
    lines = list(floors.drawing(package))
    assert {len(line) for line in lines} == {floors.WIDTH}
    words = " ".join(lines).replace("*", " ").split()
    rooms = [room for floor in floors.floors_of(package) for room in floor]
    assert [room for room in rooms if room not in words] == []


def test_what_a_room_stands_on_leaves_out_what_lies_below_that():
    every = {
        "roof": frozenset({"wall", "floor", "cellar"}),
        "wall": frozenset({"floor"}),
        "floor": frozenset({"cellar"}),
        "cellar": frozenset(),
    }
    assert floors.stands_on("roof", every) == ["wall"]
    assert floors.stands_on("cellar", every) == []


def test_an_import_that_points_up_is_not_drawn():
    upside_down = list(reversed(floors.floors_of("moorage.ops")))
    with pytest.raises(floors.UpwardError, match=r"imports moorage\.ops"):
        floors.arrows("moorage.ops", upside_down)


def test_the_pure_rooms_are_those_of_the_contract():
    assert {"model", "storage", "htools"} <= floors.pure()
    assert "jobs" not in floors.pure()
