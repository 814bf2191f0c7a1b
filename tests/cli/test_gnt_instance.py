# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance: Ganeti's option syntax, opcodes and screens."""

import json
from typing import Any

import pytest
import yaml

from moorage.errors import BadInput

INFO = {
    "name": "web1",
    "uuid": "0a1b",
    "serial_no": 7,
    "ctime": 86400.0,
    "mtime": 172800.0,
    "config_state": "up",
    "run_state": "up",
    "pnode": "node1",
    "pnode_group_name": "default",
    "pnode_group_uuid": "99ff",
    "snodes": [],
    "snodes_group_names": [],
    "snodes_group_uuids": [],
    "os": "tiny+small",
    "os_instance": {"motd": "a: b"},
    "os_actual": {"motd": "a: b", "lang": "C"},
    "network_port": 11000,
    "hypervisor": "kvm",
    "hv_instance": {"acpi": False},
    "hv_actual": {"acpi": False, "kernel_path": ""},
    "be_instance": {},
    "be_actual": {"minmem": 128, "maxmem": 128, "vcpus": 1},
    "nics": [
        ["eth", "77aa", None, "aa:00:00:01:02:03", "bridged", "br0", "", None, None]
    ],
    "disk_template": "mixed",
    "disks": [
        {
            "iv_name": "disk/0",
            "dev_type": "ext",
            "size": 1024,
            "mode": "rw",
            "name": "root",
            "uuid": "d0",
            "logical_id": ["san", "x.ext.disk0"],
            "held": {"path": None, "uris": {"kvm": "nbd:unix:/x.sock"}},
            "quarantine": "node2 may still write",
        },
        {
            "iv_name": "disk/1",
            "dev_type": "drbd",
            "size": 512,
            "mode": "ro",
            "name": None,
            "uuid": "d1",
            "logical_id": ["n1", "n2", 11001, 0, 0, "s"],
            "held": {
                "path": "/dev/drbd0",
                "mirror": {
                    "minor": 0,
                    "connection": "StandAlone",
                    "disk": "UpToDate",
                    "peer_disk": "DUnknown",
                },
            },
            "children": [
                {"dev_type": "plain", "size": 512, "mode": "rw", "uuid": "d2"}
            ],
        },
    ],
}


def test_list_uses_ganetis_columns(master, typed, same_screen) -> None:
    titles = ["Instance", "Hypervisor", "OS", "Primary_node", "Status", "Memory"]
    fields = ["name", "hypervisor", "os", "pnode", "status", "oper_ram"]
    kinds = ["text"] * 5 + ["unit"]
    master.answers["Query"] = {
        "fields": [
            {"name": n, "title": t, "kind": k, "doc": ""}
            for n, t, k in zip(fields, titles, kinds, strict=True)
        ],
        "data": [
            [
                [0, "web1"],
                [0, "kvm"],
                [0, "tiny"],
                [0, "node1"],
                [0, "running"],
                [0, 128],
            ],
            [
                [0, "web10"],
                [0, "kvm"],
                [0, ""],
                [0, "node3"],
                [0, "ADMIN_down"],
                [3, None],
            ],
            [
                [0, "db"],
                [0, "kvm"],
                [0, ""],
                [0, "n2"],
                [0, "ERROR_nodeoffline"],
                [4, None],
            ],
        ],
    }
    same_screen("gnt-instance-list", typed("gnt-instance list").out)
    assert master.calls == [("Query", ["instance", fields, None])]


@pytest.mark.requirement("S0-59")
def test_info_is_yaml(master, typed, same_screen) -> None:
    master.result = {"0a1b": INFO}
    screen = typed("gnt-instance info web1")
    same_screen("gnt-instance-info", screen.out)
    (shown,) = yaml.safe_load(screen.out)
    assert shown["Instance name"] == "web1"
    assert shown["Operating system parameters"]["motd"] == "a: b"
    assert shown["Hypervisor parameters"] == {
        "acpi": False,
        "kernel_path": "default ()",
    }
    assert shown["Nodes"][0] == {"primary": "node1", "group": "default (UUID 99ff)"}
    root, mirror = shown["Disks"]
    assert root["disk/0"] == "ext, size 1.0G"
    assert root["logical_id"] == ["san", "x.ext.disk0"]
    assert root["on primary"] == "kvm:nbd:unix:/x.sock"
    assert mirror["on primary"] == (
        "/dev/drbd0 StandAlone, UpToDate/DUnknown, status *DEGRADED*"
    )
    assert mirror["child devices"][0]["child 0"] == "plain, size 512M"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("0.0.0.0", "vnc to node1:11000 (display 5100)"),  # noqa: S104 - it is shown
        ("127.0.0.1", "vnc to 127.0.0.1:11000 (node node1) (display 5100)"),
    ],
)
def test_where_a_screen_is_is_told_in_ganetis_words(
    master, typed, address: str, told: str
) -> None:
    actual = INFO["hv_actual"] | {"vnc_bind_address": address}
    master.result = {"0a1b": INFO | {"hv_actual": actual}}
    (shown,) = yaml.safe_load(typed("gnt-instance info web1").out)
    assert shown["console connection"] == told


def test_info_as_json(master, typed) -> None:
    master.result = {"0a1b": INFO}
    assert json.loads(typed("gnt-instance info web1 --json").out) == [INFO]


def test_info_needs_a_name_or_all(typed) -> None:
    assert "name some, or say --all" in typed("gnt-instance info").err


# -- add -------------------------------------------------------------------------------


def added(master, typed, line: str) -> dict[str, Any]:
    master.result = ["node1"]
    screen = typed(f"gnt-instance add {line}")
    assert screen.err == ""
    (op,) = master.ops
    return op


@pytest.mark.requirement("S0-60")
def test_add(master, typed) -> None:
    op = added(
        master,
        typed,
        "-t ext --disk 0:size=1G,provider=p,param1=v1 "
        "--disk 1:size=2G,dev_type=sharedfile,name=data -n node2 -o tiny+small "
        "-O motd=hi -H kvm:acpi=false,-kernel_path -B memory=512M,vcpus=2 "
        "--net 0:mode=bridged,link=br0 --tags a,b --no-start --no-wait-for-sync "
        "--no-ip-check --no-name-check web1",
    )
    assert op == {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": "web1",
        "mode": "create",
        "disk_template": "ext",
        "disks": [
            {"size": 1024, "provider": "p", "param1": "v1"},
            {"size": 2048, "dev_type": "sharedfile", "name": "data"},
        ],
        "pnode": "node2",
        "os_type": "tiny+small",
        "osparams": {"motd": "hi"},
        "hypervisor": "kvm",
        "hvparams": {"acpi": "false"},
        "beparams": {"minmem": 512, "maxmem": 512, "vcpus": 2},
        "nics": [{"mode": "bridged", "link": "br0"}],
        "tags": ["a", "b"],
        "start": False,
        "wait_for_sync": False,
    }


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("-t file -s 1G --file-driver blktap x", "file_driver"),
    ],
)
def test_add_refuses_what_there_is_not(typed, line, field) -> None:
    screen = typed(f"gnt-instance add {line}")
    assert screen.status == 1
    assert f"{field} is not supported" in screen.err
    assert "nothing was changed" in screen.err


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("-t plain -s 10G x", {"disks": [{"size": 10240}]}),
        ("-t diskless --no-install x", {"disks": [], "no_install": True}),
        ("-t diskless --no-nics x", {"nics": []}),
        ("-t diskless --net 0 x", {"nics": [{}]}),
        ("-t diskless --net 1:link=b x", {"nics": [{}, {"link": "b"}]}),
        ("-t ext -s 1G -I hail x", {"iallocator": "hail"}),
        ("--from web1 x", {"mode": "clone", "src_instance": "web1", "disks": []}),
        (
            "-t blockdev --disk 0:adopt=/dev/disk/by-id/x x",
            {"disks": [{"adopt": "/dev/disk/by-id/x"}]},
        ),
    ],
)
def test_add_in_short(master, typed, line: str, fields: dict[str, Any]) -> None:
    assert added(master, typed, line).items() >= fields.items()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("add -s 1G --disk 0:size=1G x", "both give the first disk"),
        ("add -n a -I hail x", "only one of these goes"),
        ("add --no-nics --net 0:link=a x", "do not go together"),
        ("add --net a:link=a x", "'a' is not a card's number"),
        ("add -B mem=1 x", "no back-end parameter 'mem'"),
        ("modify x", "nothing to modify"),
        ("modify --online --offline x", "do not go together"),
        ("startup", "name some, or say --all"),
        ("startup --all x", "--all and names do not go together"),
        ("reboot -t warm x", "--type is one of soft, hard, full"),
        ("remove x", "nobody is here to be asked"),
        ("migrate x", "nobody is here to be asked"),
        ("failover x", "nobody is here to be asked"),
    ],
)
def test_bad_input_goes_nowhere(master, typed, line: str, sentence: str) -> None:
    screen = typed(f"gnt-instance {line}")
    assert (screen.status, screen.out) == (1, "")
    assert sentence in screen.err
    assert master.calls == []


# -- modify ----------------------------------------------------------------------------


@pytest.mark.requirement("S3-39", "S3-40", "S3-41", "S3-42", "S3-43")
@pytest.mark.parametrize(
    ("options", "disks"),
    [
        ("--disk attach,name=data1", [["attach", -1, {"name": "data1"}]]),
        ("--disk detach", [["detach", -1, {}]]),
        ("--disk 0:attach,uuid=1-2", [["attach", 0, {"uuid": "1-2"}]]),
        ("--disk -1:add,size=1G", [["add", -1, {"size": 1024}]]),
        (
            "--disk a:remove --disk b:remove",
            [["remove", "a", {}], ["remove", "b", {}]],
        ),
        ("--disk data1:detach", [["detach", "data1", {}]]),
        (
            "--disk 1:modify,mode=ro,pool=x",
            [["modify", 1, {"mode": "ro", "pool": "x"}]],
        ),
    ],
)
def test_modify_disks(master, typed, options: str, disks: list[Any]) -> None:
    typed(f"gnt-instance modify {options} web1")
    assert master.ops == [
        {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1", "disks": disks}
    ]


def test_modify_the_rest(master, typed) -> None:
    typed(
        "gnt-instance modify -B memory=1G,-vcpus -H kvm:acpi=true,-kernel_path "
        "-O a=b --os-type tiny --hotplug --hotplug-if-possible -f --online "
        "--no-wait-for-sync web1"
    )
    assert master.ops == [
        {
            "OP_ID": "OP_INSTANCE_SET_PARAMS",
            "instance_name": "web1",
            "beparams": {"minmem": 1024, "maxmem": 1024, "vcpus": "default"},
            "hvparams": {"acpi": "true", "kernel_path": "default"},
            "osparams": {"a": "b"},
            "os_name": "tiny",
            "offline": False,
            "hotplug": True,
            "hotplug_if_possible": True,
            "wait_for_sync": False,
            "force": True,
        }
    ]


def test_modify_prints_what_changed(master, typed, same_screen) -> None:
    master.result = [["disk/1", "attach:size=1024,mode=rw"], ["disk/1", "hotplug:done"]]
    screen = typed("gnt-instance modify --disk 1:attach,name=data1 web1")
    same_screen("gnt-instance-modify", screen.out)


# -- the other verbs -------------------------------------------------------------------

CASES = [
    ("startup web1", {"OP_ID": "OP_INSTANCE_STARTUP"}),
    ("start -f web1", {"OP_ID": "OP_INSTANCE_STARTUP", "force": True}),
    ("shutdown --timeout 5 web1", {"OP_ID": "OP_INSTANCE_SHUTDOWN", "timeout": 5}),
    ("stop web1", {"OP_ID": "OP_INSTANCE_SHUTDOWN"}),
    ("reboot web1", {"OP_ID": "OP_INSTANCE_REBOOT", "reboot_type": "hard"}),
    ("reboot -t full web1", {"OP_ID": "OP_INSTANCE_REBOOT", "reboot_type": "full"}),
    (
        "remove -f --ignore-failures --shutdown-timeout 3 web1",
        {
            "OP_ID": "OP_INSTANCE_REMOVE",
            "ignore_failures": True,
            "shutdown_timeout": 3,
        },
    ),
    (
        "migrate -f -n node3 --non-live web1",
        {"OP_ID": "OP_INSTANCE_MIGRATE", "target_node": "node3", "mode": "non-live"},
    ),
    ("migrate --cleanup web1", {"OP_ID": "OP_INSTANCE_MIGRATE", "cleanup": True}),
    (
        "failover --yes --ignore-consistency -n node3 web1",
        {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            "target_node": "node3",
            "ignore_consistency": True,
        },
    ),
    (
        "grow-disk web1 1 5g",
        {
            "OP_ID": "OP_INSTANCE_GROW_DISK",
            "disk": 1,
            "amount": 5120,
        },
    ),
    (
        "grow-disk --absolute web1 data1 1001",
        {
            "OP_ID": "OP_INSTANCE_GROW_DISK",
            "disk": "data1",
            "amount": 1004,
            "absolute": True,
        },
    ),
    (
        "deactivate-disks -f web1",
        {"OP_ID": "OP_INSTANCE_DEACTIVATE_DISKS", "force": True},
    ),
]


@pytest.mark.parametrize(("line", "op"), CASES)
def test_verbs(master, typed, line: str, op: dict[str, Any]) -> None:
    assert typed(f"gnt-instance {line}") == (0, "", "")
    assert master.ops == [{**op, "instance_name": "web1"}]


def test_migrate_takes_a_node_and_an_allocator(master, typed) -> None:
    typed("gnt-instance migrate -f -n node3 -I hail web1")
    (op,) = master.ops
    assert (op["target_node"], op["iallocator"]) == ("node3", "hail")


@pytest.mark.parametrize(
    "line", ["gnt-instance migrate -f web1", "gnt-node migrate n1"]
)
def test_how_guests_migrate_is_said_once(master, typed, line: str) -> None:
    said = typed(f"{line} --non-live --migration-mode live")
    assert said.status == 1
    assert "--non-live and --migration-mode do not go together" in said.err
    assert master.ops == []


def test_activate_disks_says_where(master, typed) -> None:
    master.result = [["node1", "disk/0", "/dev/loop7"], ["node1", "disk/1", "nbd:x"]]
    out = typed("gnt-instance activate-disks web1").out
    assert out == "node1:disk/0:/dev/loop7\nnode1:disk/1:nbd:x\n"


def test_all_instances_are_asked_about(master, typed) -> None:
    column = {"name": "name", "title": "Instance", "kind": "text", "doc": ""}
    rows = [[[0, "web1"]], [[0, "web2"]]]
    master.answers["Query"] = {"fields": [column], "data": rows}
    screen = typed("gnt-instance shutdown --all", "y\n")
    assert "Shut down every instance of the cluster (2: web1, web2)?" in screen.err
    assert screen.out == (
        "Waiting for job 1 for web1 ...\nWaiting for job 2 for web2 ...\n"
    )
    assert [op["instance_name"] for op in master.ops] == ["web1", "web2"]


def test_errors_of_the_master_pass(master, typed) -> None:
    master.answers["SubmitJobOnce"] = BadInput("Missing provider for template 'ext'")
    screen = typed("gnt-instance add -t ext --disk 0:size=1G x")
    assert "error type: wrong_input, error details:\nMissing provider" in screen.err


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ("add:link=br0", ["add", -1, {"link": "br0"}]),
        ("add,link=br0", ["add", -1, {"link": "br0"}]),
        ("1:add,network=lan,ip=pool", ["add", 1, {"network": "lan", "ip": "pool"}]),
        ("remove", ["remove", -1, {}]),
        ("front:remove", ["remove", "front", {}]),
        ("0:modify,vlan=.5:10", ["modify", 0, {"vlan": ".5:10"}]),
        ("0:-ip", ["modify", 0, {"ip": None}]),
    ],
)
def test_modify_of_cards(master, typed, given: str, change: list[Any]) -> None:
    assert typed(f"gnt-instance modify --net {given} web1").status == 0
    assert master.ops[0]["nics"] == [change]


def test_two_changes_of_one_card_at_once(master, typed) -> None:
    screen = typed("gnt-instance modify --net 0:add,remove web1")
    assert "one at a time" in screen.err
    assert master.ops == []


def test_without_a_word_the_cluster_says_what_cards_there_are(master, typed) -> None:
    assert "nics" not in added(master, typed, "-t diskless x")


def test_a_hundred_thousand_cards_are_refused_at_once(master, typed) -> None:
    screen = typed("gnt-instance add -t diskless --net 99999:link=a web1")
    assert (screen.status, master.calls) == (1, [])
    assert "99999" in screen.err
    twice = typed("gnt-instance add -t diskless --net 0:link=a --net 0:link=b web1")
    assert "--net 0 is given twice" in twice.err
