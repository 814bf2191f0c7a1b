# SPDX-License-Identifier: BSD-2-Clause
"""What the allocator's message tells of storage, and what hail makes of it."""

import json
from importlib import import_module

import pytest


@pytest.fixture
def answer(tmp_path, capsys):
    def ask(message: dict) -> dict:
        path = tmp_path / "message.json"
        path.write_text(json.dumps(message))
        import_module("moorage.cli.htools.hail").main(
            ["--no-capacity-checks", str(path)]
        )
        return json.loads(capsys.readouterr().out)

    return ask


def newcomer(asked, template: str, nodes: int) -> dict:
    message = asked()
    message["nodegroups"]["u"]["ipolicy"]["disk-templates"] = [template]
    message["request"] |= {"disk_template": template, "required_nodes": nodes}
    return message


def resident(asked, template: str, homes: list[str]) -> dict:
    """Return a message that asks where an instance of n1 can go, of three nodes."""
    message = newcomer(asked, template, 1)
    message["nodes"]["n3"] = message["nodes"]["n2"]
    left_out = ("type", "name", "required_nodes")
    new = {k: v for k, v in message["request"].items() if k not in left_out}
    message["instances"]["web"] = new | {"nodes": homes, "admin_state": "up"}
    message["request"] = {
        "type": "node-evacuate", "instances": ["web"], "evac_mode": "primary-only",
    }  # fmt: skip
    return message


@pytest.mark.requirement("S0-15")
@pytest.mark.parametrize(("template", "nodes"), [("ext", 1), ("drbd", 2)])
def test_a_newcomer_gets_as_many_nodes_as_its_storage_needs(
    asked, answer, template, nodes
):
    told = answer(newcomer(asked, template, nodes))
    assert told["success"], told
    assert len(set(told["result"])) == nodes


@pytest.mark.requirement("S0-15")
@pytest.mark.parametrize("template", ["ext", "sharedfile", "plain"])
def test_storage_without_a_mirror_gets_no_second_node(asked, answer, template):
    told = answer(newcomer(asked, template, 2))
    assert not told["success"]
    assert "FailDisk: 2" in told["info"]
    assert told["result"] == []


@pytest.mark.requirement("S0-15")
def test_an_instance_leaves_by_migration_to_its_mirror_or_to_any_node(asked, answer):
    """The mirror of the cluster's own is on one node; shared storage is everywhere."""
    told = answer(resident(asked, "drbd", ["n1", "n2"]))
    ((_name, _group, homes),) = told["result"][0]
    assert homes == ["n2", "n1"]
    told = answer(resident(asked, "ext", ["n1"]))
    ((_name, _group, homes),) = told["result"][0]
    assert homes in (["n2"], ["n3"])
    told = answer(resident(asked, "plain", ["n1"]))
    assert told["result"][0] == []
    assert told["result"][1][0][0] == "web", "it cannot leave, and the reason is told"
