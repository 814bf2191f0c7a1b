# SPDX-License-Identifier: BSD-2-Clause
"""Reading and writing clusters: round trips, and one sentence for what is off."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.errors import BadInput
from moorage.htools import load, sample
from moorage.htools.formats import iallocator, rapi, simulate, text
from moorage.htools.policy import Policy, Spec

GOOD = text.dump(sample.cluster(7, sample.Shape(kind="mixed", oddity=0.3)))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_written_reads_back_the_same(seed):
    fleet = sample.cluster(seed)
    assert text.parse(text.dump(fleet)) == fleet


def test_old_files_without_optional_columns_load():
    source = (
        "g|u|preferred|\n\n"
        "n1|8192|512|7000|1000|900|4|M|u\n\n"
        "i1|512|10|1|running|Y|n1||plain|\n\n"
    )
    fleet = text.parse(source)
    assert fleet.nodes[0].spindles == 1
    assert fleet.nodes[0].cpu_speed == 1.0
    assert fleet.instances[0].spindle_use == 1


BAD = [
    ("n1|x|0|0|0|0|0|N|u", "line 3, column 2"),  # text for a size
    ("n1|-1|0|0|0|0|0|N|u", "line 3, column 2"),  # a negative size
    ("n1|NaN|0|0|0|0|0|N|u", "line 3, column 2"),
    ("n1|1e999|0|0|0|0|0|N|u", "line 3, column 2"),  # infinite
    ("n1|1|1.5|0|0|0|0|N|u", "line 3, column 3"),  # a fraction of a MiB
    ("n1|1|0|0|0|0|0|N|other", "line 3, column 9"),  # an unknown group
    ("n1|1|0|0|0", "line 3, column 1"),  # a truncated line
    ("|1|0|0|0|0|0|N|u", "line 3, column 1"),  # no name
    ("n1|" + "9" * 400 + "|0|0|0|0|0|N|u", "line 3, column 2"),
]


@pytest.mark.parametrize(("line", "where"), BAD)
def test_a_bad_node_is_named_by_its_place(line, where):
    with pytest.raises(BadInput, match=where) as caught:
        text.parse(f"g|u|preferred|\n\n{line}\n\n\n", "some.data")
    assert caught.value.message.startswith("some.data: ")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("i1|512|10|1|running|Y|nope||plain|", "line 5, column 7"),
        ("i1|512|10|1|asleep|Y|n1||plain|", "line 5, column 5"),
        ("i1|512|10|1|running|Y|n1|n1|drbd|", "line 5, column 8"),
        ("i1|512|10|1|running|Y|n1||magic|", "line 5, column 9"),
        ("i1|512|10|1|running|?|n1||plain|", "line 5, column 6"),
    ],
)
def test_a_bad_instance_is_named_by_its_place(line, where):
    source = f"g|u|preferred|\n\nn1|1|0|0|0|0|0|N|u\n\n{line}\n\n"
    with pytest.raises(BadInput, match=where):
        text.parse(source)


def test_too_few_sections_are_counted():
    with pytest.raises(BadInput, match="2 sections instead of 4 or more"):
        text.parse("a\n\nb\n")


def _damaged(source: str, seed: int) -> str:
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    at = draw.randrange(len(source))
    kind = draw.randrange(4)
    if kind == 0:
        return source[:at]
    if kind == 1:
        return source[:at] + draw.choice("|\n,;-\0é9.x") + source[at:]
    if kind == 2:
        return source[:at] + source[at + draw.randrange(1, 40) :]
    return source[:at] + "".join(chr(draw.randrange(1, 300)) for _ in range(50))


@pytest.mark.parametrize("seed", range(300))
def test_damaged_text_loads_or_says_what_is_wrong(seed):
    try:
        load(text.parse(_damaged(GOOD, seed), "f"))
    except BadInput as error:
        assert "\n" not in error.message  # noqa: PT017 - either outcome is fine


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_noise_is_refused_in_one_sentence(noise):
    with pytest.raises(BadInput) as caught:
        text.parse("|" + noise, "f")  # a group without a name
    assert caught.value.message.startswith("f: line ")


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_is_no_message_either(noise):
    with pytest.raises(BadInput, match=r"^f: line \d+, column \d+: "):
        iallocator.parse(noise, "f")


def _message() -> dict:
    spec = dict.fromkeys(
        ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count"), 1
    ) | {"spindle-use": 1}
    return {
        "cluster_tags": [],
        "enabled_hypervisors": ["kvm"],
        "nodegroups": {
            "u": {
                "name": "g",
                "alloc_policy": "preferred",
                "networks": [],
                "tags": [],
                "ipolicy": {
                    "std": spec,
                    "minmax": [{"min": spec, "max": spec | {"memory-size": 9999}}],
                    "disk-templates": ["drbd8", "ext"],
                    "vcpu-ratio": 4.0,
                    "spindle-ratio": 32,
                },
            }
        },
        "nodes": {
            "n1": {
                "offline": False,
                "drained": False,
                "group": "u",
                "ndparams": {"exclusive_storage": False, "spindle_count": 2},
                "total_memory": 8192,
                "reserved_memory": 512,
                "free_memory": 7000,
                "total_disk": 1000,
                "free_disk": 900,
                "total_cpus": 4,
                "reserved_cpus": 1,
                "free_spindles": 0,
            }
        },
        "instances": {},
        "request": {"type": "node-evacuate", "instances": [], "evac_mode": "all"},
    }


def test_a_message_is_read():
    found = iallocator.parse(json.dumps(_message()), "f")
    assert found.fleet.nodes[0].hypervisor == "kvm"
    assert found.fleet.groups[0].policy.templates == ("drbd", "ext")
    # A KVM node is taken to use a fixed amount itself.
    assert load(found.fleet).state.nodes[0].mem_own == 4096


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("nodes", "n1", "free_memory"), "much", "is not a whole number"),
        (("nodes", "n1", "total_memory"), -5, "is negative"),
        (("nodes", "n1", "group"), "other", "is no group"),
        (("nodes", "n1", "offline"), 1, "is neither true nor false"),
        (("request", "type"), "wish", "invalid request type"),
        (("request", "instances"), ["nobody"], "is no instance"),
        (("nodegroups", "u", "alloc_policy"), "maybe", "is not one of"),
    ],
)
def test_a_bad_value_is_named_by_its_place(path, value, says):
    message = _message()
    inner = message
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    source = json.dumps(message, indent=1)
    with pytest.raises(BadInput, match=says) as caught:
        iallocator.parse(source, "f")
    line = int(caught.value.message.split("line ")[1].split(",")[0])
    assert json.dumps(path[-1]) in source.splitlines()[line - 1] or "nobody" in source


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(number):
    source = json.dumps(_message()).replace("8192", number)
    with pytest.raises(BadInput, match="line 1, column"):
        iallocator.parse(source, "f")


def test_rapi_answers_are_read():
    message = _message()
    group = message["nodegroups"]["u"] | {"uuid": "u"}
    node = {
        "name": "n1",
        "group.uuid": "u",
        "ndparams": {"spindle_count": 2},
        "offline": False,
        "drained": False,
        "tags": [],
        "mtotal": 8192,
        "mnode": 512,
        "mfree": 7000,
        "ctotal": 4,
    }
    inst = {
        "name": "i1",
        "oper_ram": None,
        "beparams": {"vcpus": 1, "auto_balance": True, "maxmem": 700},
        "disk.sizes": [10, 20],
        "disk_usage": 30,
        "pnode": "n1",
        "snodes": [],
        "status": "running",
        "disk_template": "ext",
        "tags": [],
    }
    info = {
        "tags": [],
        "master": "n1",
        "default_hypervisor": "kvm",
        "ipolicy": group["ipolicy"],
    }
    answers = {"groups": [group], "nodes": [node], "instances": [inst], "info": info}
    fleet = rapi.parse({name: json.dumps(value) for name, value in answers.items()})
    assert fleet.nodes[0].master
    assert fleet.instances[0].mem == 700
    assert fleet.nodes[0].disk_total == 0.0


def test_a_simulated_cluster_starts_counting_at_one():
    fleet = simulate.parse(["p,2,100g,16g,8", "a,1,10g,1g,3"])
    assert [node.name for node in fleet.nodes] == [
        "node-01-001",
        "node-02-001",
        "node-02-002",
    ]
    assert fleet.groups[0].alloc_policy == "last_resort"


@pytest.mark.parametrize("spec", ["", "p", "x,1,1,1,1", "p,1,1,1,z", "p,1,one,1,1"])
def test_a_bad_simulation_is_refused(spec):
    with pytest.raises(BadInput):
        simulate.parse([spec])


def test_a_policy_with_several_ranges_makes_the_round_trip():
    one = Spec(1, 1, 1, 1, 1, 1)
    two = Spec(9, 9, 9, 9, 9, 9)
    policy = Policy(((one, two), (two, two)), one, ("plain",), 0.05, 1e8)
    fleet = sample.cluster(1).replaced(policy=policy)
    assert text.parse(text.dump(fleet)).policy == policy
