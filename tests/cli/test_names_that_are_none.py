# SPDX-License-Identifier: BSD-2-Clause
"""Names that are left out, empty, taken or of nothing; and what may be asked twice."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .harbour import Harbour, harbour


@pytest.fixture
def at(typed: Any) -> Iterator[Harbour]:
    with harbour(typed) as found:
        yield found


def test_no_group_is_connected_while_another_one_is_not_there(at: Harbour) -> None:
    at.types("gnt-network add --network=192.0.2.0/24 lan")
    assert "'nowhere'" in at.refuses("gnt-network connect lan default nowhere")
    assert "not connected to any node group" in at.types("gnt-network info lan")


def test_a_network_is_connected_in_the_older_order(at: Harbour) -> None:
    at.types("gnt-network add --network=192.0.2.0/24 lan")
    at.types("gnt-network connect lan bridged br0 default")
    assert "default (mode:bridged link:br0 vlan:)" in at.types("gnt-network info lan")
    at.types("gnt-network disconnect lan default")
    said = at.refuses("gnt-network connect -N link=br1 lan bridged br0")
    assert "node group 'bridged' is not known" in said
    at.types("gnt-cluster modify -N link=br0")
    at.types("gnt-group add bridged")
    at.types("gnt-group add routed")
    at.types("gnt-network connect lan bridged routed")  # these are groups
    shown = at.types("gnt-network info lan")
    assert "bridged (mode:" in shown
    assert "routed (mode:" in shown


def test_no_disk_is_called_none(at: Harbour) -> None:
    """The word means that a disk has no name; whoever types it wants one."""
    told = at.refuses("gnt-disk add -t ext -p san -s 64M none")
    assert "a disk cannot be called 'none': the word has a meaning" in told
    at.types("gnt-disk modify --name none data1")  # this one takes the name away


def test_no_machine_is_called_as_another(at: Harbour) -> None:
    said = at.refuses("gnt-instance add -t diskless --no-install -n node2 node1")
    assert "a node is called node1: no instance can be" in said
    said = at.refuses("gnt-instance rename web2 node3")
    assert "a node is called node3: no instance can be" in said


@pytest.mark.parametrize("nodes", ["node1:", ":node1", "node1::node2"])
def test_a_name_that_is_left_out_is_no_node(at: Harbour, nodes: str) -> None:
    said = at.refuses(f"gnt-instance add -t diskless --no-install -n {nodes} new1")
    assert "leaves a name out" in said


def test_a_guest_that_was_started_paused_is_paused(at: Harbour) -> None:
    at.types("gnt-instance startup --paused web2")
    columns = "gnt-instance list --no-headers -o status,status.reason web2"
    assert at.types(columns).startswith("paused prelaunch: it was started paused;")


def test_what_is_so_in_any_case_may_be_asked_for(at: Harbour) -> None:
    said = at.types("gnt-cluster modify --reserved-lvs ''")
    assert said == "Nothing to modify: it is so in any case\n"
    assert "nothing to change" in at.refuses("gnt-cluster modify")
    at.types("gnt-debug delay --no-master 1")


def test_a_disk_that_is_renamed_to_none_has_no_name(at: Harbour) -> None:
    told = at.types("gnt-disk rename data1 none")
    assert told.endswith("Took the name of disk data1\n")
    assert "data1" not in at.types("gnt-disk list --no-headers -o name")


@pytest.mark.parametrize(
    "line",
    [
        "gnt-instance add -t ext --disk 0:size=64M,provider=san -n '' new1",
        "gnt-instance migrate -f --target-node= web1",
        "gnt-instance replace-disks -n '' web1",
        "gnt-node evacuate -f -n '' node2",
        "gnt-disk add -t ext -p san -s 64M -n '' data2",
    ],
)
def test_an_empty_variable_names_no_node(at: Harbour, line: str) -> None:
    assert "names no node: what it was given is empty" in at.refuses(line)
    assert not at.cluster.engine.jobs


def test_a_connection_of_a_network_has_parameters_of_its_own(at: Harbour) -> None:
    at.types("gnt-network add --network=192.0.2.0/24 lan")
    said = at.refuses("gnt-network connect -N link=br0,mtu=9 lan default")
    assert "a connection has no parameter 'mtu': it has mode, link, vlan" in said
    said = at.refuses("gnt-network modify --network=192.0.2.0/25 lan")
    assert "--network is not supported: a network keeps its addresses" in said


def test_what_a_job_did_before_it_was_refused_is_not_denied(
    at: Harbour, tmp_path: Path
) -> None:
    tag = {"OP_ID": "OP_TAGS_SET", "kind": "cluster", "tags": ["blue"]}
    wrong = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "nosuch"}
    (tmp_path / "job").write_text(json.dumps([tag, wrong]))
    told = at.refuses(f"gnt-debug submit-job {tmp_path}/job")
    assert "instance 'nosuch' is not known" in told
    assert "nothing was changed" not in told
    assert "says what was done before" in told
    assert at.types("gnt-cluster list-tags") == "blue\n"
