# SPDX-License-Identifier: BSD-2-Clause
"""Reading instances fast: the same row as with care, or none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import BadInput
from moorage.htools.formats import iallocator, jsontext
from moorage.htools.formats.fast_instance import resident

PLACES = {"n1": 0, "n2": 1, "n3": 2}
USUAL = {
    "memory": 512,
    "disk_space_total": 1024,
    "vcpus": 2,
    "nodes": ["n1", "n2"],
    "admin_state": "up",
    "disk_template": "drbd",
    "tags": ["a:b"],
    "spindle_use": 1,
    "disks": [{"size": 1024}],
    "nics": [{"network": None}, {"network": "net"}],
    "forthcoming": False,
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([2**31, 2**44 + 1, 1.5, 2.0, "", "n1", "up", "drbd8", "\n", {}]),
    st.lists(st.sampled_from(["n1", "n2", "n4", "", 3, None]), max_size=3),
    st.lists(
        st.dictionaries(
            st.sampled_from(["size", "spindles", "sunit", "network"]),
            st.sampled_from([None, 0, 7, -1, "x", ["file", "/srv"], True]),
            max_size=3,
        ),
        max_size=2,
    ),
)


def _with_care(data):
    value = jsontext.parse(json.dumps(data), "<text>")
    try:
        return iallocator._careful("i", value, PLACES)
    except BadInput:
        return None


def test_what_masters_write_is_read_fast():
    row = resident("i", USUAL, PLACES)
    assert row is not None
    assert row == _with_care(USUAL)


@given(st.dictionaries(st.sampled_from(sorted(USUAL)), ODD, max_size=2))
def test_whatever_is_read_fast_would_be_read_so_with_care(changes):
    data = USUAL | changes
    row = resident("i", data, PLACES)
    assert row is None or row == _with_care(data)


@given(st.sets(st.sampled_from(sorted(USUAL))))
def test_what_is_missing_is_left_to_care(gone):
    data = {key: value for key, value in USUAL.items() if key not in gone}
    row = resident("i", data, PLACES)
    assert row is None or row == _with_care(data)


@pytest.mark.parametrize("data", [None, 3, [], "text", {}])
def test_what_is_no_instance_is_left_to_care(data):
    assert resident("i", data, PLACES) is None
