# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster, gnt-node, gnt-group, gnt-storage."""

import json
from typing import Any

import pytest
import yaml


def table_of(resource: dict[str, Any]) -> Any:
    """Return an answer to Query that knows one object."""

    def query(_what: str, fields: list[str], _wanted: Any) -> dict[str, Any]:
        columns = [{"name": f, "title": f, "kind": "other", "doc": ""} for f in fields]
        return {"fields": columns, "data": [[[0, resource.get(f)] for f in fields]]}

    return query


# -- gnt-cluster -----------------------------------------------------------------------

CLUSTER = {
    "name": "demo",
    "uuid": "c0",
    "ctime": 0.0,
    "mtime": 86400.0,
    "master": "node1",
    "tags": [],
    "software_version": "0.2.0",
    "config_version": 3010000,
    "os_api_version": 20,
    "enabled_hypervisors": ["kvm", "fake"],
    "hvparams": {"kvm": {"acpi": True, "kernel_args": "ro"}, "fake": {}},
    "beparams": {"default": {"minmem": 128, "maxmem": 128}},
    "file_storage_dir": "/srv/files",
    "shared_file_storage_dir": "/srv/shared",
    "default_iallocator": "hail",
    "default_iallocator_params": {"node-cost": "2"},
    "mac_prefix": "aa:00:00",
    "uid_pool": [[30000, 30099], [40000, 40000]],
    "enabled_disk_templates": ["sharedfile", "ext"],
    "diskparams": {"ext": {"access": "userspace"}},
}


@pytest.mark.requirement("S0-18")
def test_cluster_info(master, typed, same_screen) -> None:
    master.answers["QueryClusterInfo"] = CLUSTER
    screen = typed("gnt-cluster info")
    same_screen("gnt-cluster-info", screen.out)
    shown = yaml.safe_load(screen.out)
    assert shown["Cluster parameters"]["shared file storage path"] == "/srv/shared"
    assert json.loads(typed("gnt-cluster info --json").out) == CLUSTER


def test_the_queue_is_closed_and_opened(master, typed) -> None:
    asked: list[bool] = []
    master.answers["SetDrainFlag"] = asked.append
    master.answers["QueryConfigValues"] = lambda _fields: [asked[-1]]
    assert typed("gnt-cluster queue drain").status == 0
    assert typed("gnt-cluster queue info").out == "The drain flag is set\n"
    assert typed("gnt-cluster queue undrain").status == 0
    assert typed("gnt-cluster queue info").out == "The drain flag is unset\n"
    assert asked == [True, False]
    assert "drain, undrain or info" in typed("gnt-cluster queue stop").err


def test_cluster_version_and_master(master, typed) -> None:
    master.answers["QueryClusterInfo"] = CLUSTER
    master.answers["QueryConfigValues"] = lambda fields: ["node1" for _ in fields]
    assert typed("gnt-cluster version").out == (
        "Software version: 0.2.0\nConfiguration format: 3010000\nOS api version: 20\n"
    )
    assert typed("gnt-cluster getmaster").out == "node1\n"


def test_cluster_modify(master, typed) -> None:
    typed(
        "gnt-cluster modify --shared-file-storage-dir=/x -H kvm:acpi=true,-a "
        "-B memory=1G -D ext:access=userspace --enabled-disk-templates ext,plain "
        "-I hail --enabled-hypervisors kvm"
    )
    assert master.ops == [
        {
            "OP_ID": "OP_CLUSTER_SET_PARAMS",
            "enabled_hypervisors": ["kvm"],
            "enabled_disk_templates": ["ext", "plain"],
            "shared_file_storage_dir": "/x",
            "default_iallocator": "hail",
            "beparams": {"default": {"minmem": 1024, "maxmem": 1024}},
            "hvparams": {"kvm": {"acpi": "true", "a": "default"}},
            "diskparams": {"ext": {"access": "userspace"}},
        }
    ]


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("--uid-pool=2000,1000-1019", {"uid_pool": [[1000, 1019], [2000, 2000]]}),
        ("--uid-pool=", {"uid_pool": []}),
        ("--add-uids 5-6 --remove-uids 7", {"add_uids": [[5, 6]]}),
    ],
)
def test_cluster_modify_user_ids(typed, master, options, fields):
    typed(f"gnt-cluster modify {options}")
    (op,) = master.ops
    assert fields.items() <= op.items()


@pytest.mark.parametrize("ranges", ["0-10", "20-10", "root", "1-5,5-9"])
def test_cluster_modify_refuses_user_ids(typed, master, ranges):
    assert "user-id" in typed(f"gnt-cluster modify --uid-pool={ranges}").err
    assert master.ops == []


def test_cluster_verify(master, typed, same_screen) -> None:
    master.result = {
        "errors": [],
        "warnings": [],
        "checked": {"nodes": 3, "disks": 2},
    }
    assert typed("gnt-cluster verify") == (
        0,
        "* Verified 3 nodes, 2 disks\n* No problem found\n",
        "",
    )
    master.result = {
        "warnings": [],
        "errors": [
            {
                "object": "disk data1",
                "message": "its volume is missing on node2",
                "hint": "gnt-disk info data1",
            },
            {"object": "node node3", "message": "no answer", "hint": ""},
        ],
        "checked": {"nodes": 3},
    }
    screen = typed("gnt-cluster verify")
    assert screen.status == 1
    same_screen("gnt-cluster-verify", screen.out)
    assert typed("gnt-cluster verify --json").status == 1


def test_cluster_destroy_wants_to_be_sure(typed) -> None:
    assert "--yes-do-it" in typed("gnt-cluster destroy").err


# -- gnt-node --------------------------------------------------------------------------


def test_a_token_comes_from_a_file(typed, master, tmp_path) -> None:
    file = tmp_path / "join-token"
    file.write_text("t0ken\n")
    found = typed(f"gnt-node add --token-file {file} n2")
    assert "t0ken" in master.ops[-1].values()
    assert "Warning" not in found.err
    assert "every user of this machine" in typed("gnt-node add --token t0ken n2").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "--token-file /nowhere",
            "the token's file /nowhere cannot be read: No such file or directory\n",
        ),
        ("--token-file /bin/true", "the token's file /bin/true holds no text"),
        ("--token-file /dev/null", "there is no token in /dev/null"),
        ("--token a --token-file b", "do not go together"),
    ],
)
def test_a_token_that_cannot_be_had(typed, words, said) -> None:
    found = typed(f"gnt-node add {words} n2")
    assert found.status == 1
    assert said in found.err


@pytest.mark.parametrize(
    ("line", "op", "first"),
    [
        (
            "add --token t -p 127.0.3.2 -g rack2 --readd n2",
            {
                "OP_ID": "OP_NODE_ADD",
                "primary_ip": "127.0.3.2",
                "group": "rack2",
                "token": "t",
                "readd": True,
            },
            "Added node n2",
        ),
        ("remove n2", {"OP_ID": "OP_NODE_REMOVE"}, "Removed node n2"),
        (
            "modify --offline n2",
            {"OP_ID": "OP_NODE_SET_PARAMS", "offline": True},
            "Modified node n2",
        ),
        (
            "modify -O no -D yes -C no --node-powered=no n2",
            {
                "OP_ID": "OP_NODE_SET_PARAMS",
                "offline": False,
                "drained": True,
                "master_candidate": False,
                "powered": False,
            },
            "Modified node n2",
        ),
    ],
)
def test_node_verbs(master, typed, line: str, op: dict[str, Any], first: str) -> None:
    screen = typed(f"gnt-node {line}")
    assert (screen.status, screen.out.splitlines()[0]) == (0, first)
    assert master.ops == [{**op, "node_name": "n2"}]


def test_a_node_that_is_so_already_is_told_by_what_was_asked(typed) -> None:
    screen = typed("gnt-node modify -D no n2")
    assert screen.out == "Modified node n2\n - drained -> False\n"


def test_the_token_may_come_from_the_environment(master, typed) -> None:
    environ = {"MOORAGE_TOKEN": "5f2a"}
    typed("gnt-node add n2", **environ)
    assert master.ops == [{"OP_ID": "OP_NODE_ADD", "node_name": "n2", "token": "5f2a"}]


@pytest.mark.requirement("S0-14")
@pytest.mark.parametrize(
    ("line", "op"),
    [
        ("migrate -f -n n3 n2", {"OP_ID": "OP_NODE_MIGRATE", "target_node": "n3"}),
        ("failover -f -n n3 n2", {"OP_ID": "OP_NODE_FAILOVER", "target_node": "n3"}),
        (
            "evacuate -f -n n3 n2",
            {"OP_ID": "OP_NODE_EVACUATE", "remote_node": "n3", "mode": "all"},
        ),
        (
            "evacuate -f -p -I hail n2",
            {"OP_ID": "OP_NODE_EVACUATE", "iallocator": "hail", "mode": "primary-only"},
        ),
    ],
)
def test_emptying_a_node_follows_its_jobs(
    master, typed, line: str, op: dict[str, Any]
) -> None:
    jobs = [[True, 8], [True, 9]]
    master.result = {"jobs": jobs, "names": ["web1", "web2"], "stayed": {}}
    screen = typed(f"gnt-node {line}")
    told = "Waiting for job 8 for web1 ...\nWaiting for job 9 for web2 ...\n"
    assert (screen.status, screen.out) == (0, told)
    assert master.ops == [{**op, "node_name": "n2"}]


def test_who_stays_on_a_node_is_told_at_the_end(master, typed) -> None:
    stayed = {"f1": "disk d of template 'file' stays on its node"}
    master.result = {"jobs": [[True, 8]], "names": ["web1"], "stayed": stayed}
    screen = typed("gnt-node failover -f n2")
    assert (screen.status, screen.out.splitlines()) == (
        1,
        [
            "Waiting for job 8 for web1 ...",
            "1 instance stayed on node n2:",
            "  - f1: disk d of template 'file' stays on its node",
        ],
    )


def test_who_left_a_node_and_who_stays_is_told_as_json(master, typed) -> None:
    stayed = {"f1": "disk d of template 'file' stays on its node"}
    master.result = {"jobs": [[True, 8]], "names": ["web1"], "stayed": stayed}
    screen = typed("gnt-node failover -f --json n2")
    assert (screen.status, json.loads(screen.out)) == (
        1,
        {
            "jobs": [{"name": "web1", "job": 8, "status": "success", "error": ""}],
            "stayed": stayed,
        },
    )
    master.result = {"jobs": [], "names": [], "stayed": {}}
    nobody = typed("gnt-node failover -f --json n2")
    assert (nobody.status, json.loads(nobody.out)) == (0, {"jobs": [], "stayed": {}})


def test_an_empty_node_has_nothing_to_move(master, typed) -> None:
    master.result = {"jobs": []}
    out = typed("gnt-node migrate -f n2").out
    assert out == "There is nothing to move away from node n2\n"


def test_node_list_asks_for_ganetis_fields(master, typed) -> None:
    master.answers["Query"] = {"fields": [], "data": []}
    typed("gnt-node list")
    wanted = [
        "name",
        "dtotal",
        "dfree",
        "mtotal",
        "mnode",
        "mfree",
        "pinst_cnt",
        "sinst_cnt",
    ]
    assert master.calls[0][1][1] == wanted


def test_node_info(master, typed) -> None:
    node = {"name": "n2", "uuid": "n-2", "pinst_list": ["web1"], "tags": ["a"]}
    node["storage"] = [
        {"sunit": ["sharedfile", "/srv", []], "free": 5, "total": 10},
        {"sunit": ["ext", "san", []], "free": None, "total": None},
    ]
    master.answers["Query"] = table_of(node)
    (shown,) = yaml.safe_load(typed("gnt-node info n2").out)
    assert shown["Node name"] == "n2"
    assert shown["primary for instances"] == ["web1"]
    assert shown["storage units"] == [
        "sharedfile /srv: free 5 MiB of 10 MiB",
        "ext san: room unknown",
    ]


# -- gnt-group -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "op"),
    [
        (
            "add --alloc-policy last_resort g",
            {"OP_ID": "OP_GROUP_ADD", "alloc_policy": "last_resort"},
        ),
        ("rename g h", {"OP_ID": "OP_GROUP_RENAME", "new_name": "h"}),
        ("remove g", {"OP_ID": "OP_GROUP_REMOVE"}),
        (
            "assign-nodes g n1 n2",
            {"OP_ID": "OP_GROUP_ASSIGN_NODES", "nodes": ["n1", "n2"]},
        ),
        (
            "modify --alloc-policy preferred g",
            {"OP_ID": "OP_GROUP_SET_PARAMS", "alloc_policy": "preferred"},
        ),
    ],
)
def test_group_verbs(master, typed, line: str, op: dict[str, Any]) -> None:
    assert typed(f"gnt-group {line}").status == 0
    assert master.ops == [{**op, "group_name": "g"}]


def test_group_info_and_errors(master, typed) -> None:
    master.answers["Query"] = table_of({"name": "g", "uuid": "u", "node_list": ["n1"]})
    (shown,) = yaml.safe_load(typed("gnt-group info g").out)
    assert shown["Nodes"] == ["n1"]
    assert "nothing to change" in typed("gnt-group modify g").err


# -- gnt-storage -----------------------------------------------------------------------

PROVIDERS = [
    [
        "san",
        {
            "node10": [["/srv/ext/san", False, "File 'grow' is missing", []]],
            "node2": [["/srv/ext/san", True, "", [["pool", "where"], ["a", "b"]]]],
            "node1": [["/srv/ext/san", True, "", []]],
            "node3": [],
        },
        {"default": True, "other": False},
        [["pool", "where it is"]],
    ],
    ["broken", {"node1": []}, {"default": False}, []],
]


PLACES = [
    [
        "sharedfile",
        None,
        "sharedfile",
        {
            "node1": ["/shared", False, "there is no directory /shared", None, None],
            "node2": ["/shared", True, "", 2048, 512],
        },
        {"default": False, "far": True},
        [["directory", "Where ``files`` are."]],
    ],
    ["ext", "nas1", "san", {}, {}, [["provider", "Who drives it."]]],
]


@pytest.mark.requirement("S0-63", "S0-87")
def test_storage_diagnose(master, typed, same_screen) -> None:
    """Part of the last row: what is printed; what nodes tell, with the operation."""
    master.result, master.results = PROVIDERS, {"OP_STORAGE_DIAGNOSE": PLACES}
    same_screen("gnt-storage-diagnose", typed("gnt-storage diagnose").out)
    assert "broken" not in typed("gnt-storage diagnose san").out
    unknown = typed("gnt-storage diagnose nope")
    assert unknown.status == 1
    assert "no node has an ExtStorage provider 'nope'" in unknown.err
    found = json.loads(typed("gnt-storage diagnose --json").out)
    assert [one.get("name", one.get("pool")) for one in found[1:]] == [
        "broken",
        None,
        "nas1",
    ]


@pytest.mark.requirement("S0-64", "S0-87")
def test_storage_info(master, typed, same_screen) -> None:
    """Part of the last row: what is printed."""
    master.result, master.results = PROVIDERS, {"OP_STORAGE_DIAGNOSE": PLACES}
    same_screen("gnt-storage-info", typed("gnt-storage info").out)
    assert typed("gnt-storage info nope").out == "nope: Not Found\n"


@pytest.mark.requirement("S0-63", "S0-64")
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("info", "Can't get the ExtStorage providers list"),
        ("diagnose", "Can't get the list of ExtStorage providers"),
    ],
)
def test_no_provider_at_all(master, typed, command: str, sentence: str) -> None:
    master.result = []
    screen = typed(f"gnt-storage {command}")
    assert (screen.status, screen.out) == (1, "")
    assert sentence in screen.err
