# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster: the cluster as a whole."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from moorage import __version__
from moorage.errors import BadInput

from . import join_token, policy_options, pool_options, renew_crypto, tags
from .command import Call, Command, Example, Operand, Option, Program
from .follow import fetch, perform
from .main import run
from .option_syntax import backend_parameters, ident_key_values, shown_uids, uid_ranges
from .options import DEBUG, IALLOCATOR, JOB, JSON, moot, names
from .table import moment
from .yamlish import Flow, lines

POLICY = "Instance policy - limits for instances"
_BOOTSTRAP = "moorage.daemons.bootstrap"


# -- settings --------------------------------------------------------------------------


def settings(call: Call) -> dict[str, Any]:
    """Return the settings that were given, by the names of the cluster's fields."""
    found = call.given(
        enabled_hypervisors="enabled_hypervisors",
        enabled_disk_templates="enabled_disk_templates",
        shared_file_storage_dir="shared_file_storage_dir",
        file_storage_dir="file_storage_dir",
        gluster_storage_dir="gluster_storage_dir",
        volume_group_name="vg_name",
        default_iallocator="default_iallocator",
        mac_prefix="mac_prefix",
        primary_ip="primary_ip",
        uid_pool="uid_pool",
        add_uids="add_uids",
        remove_uids="remove_uids",
    )
    for field in ("add_pools", "remove_pools"):
        if call.option(field):
            found[field] = call.option(field)
    if call.option("backend_parameters"):
        found["beparams"] = {"default": call.option("backend_parameters")}
    for field, option in _NESTED.items():
        if call.option(option):
            found[field] = _nested(call.option(option))
    return found


_NESTED = {"hvparams": "hypervisor_parameters", "diskparams": "disk_parameters"}


def _nested(given: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for ident, keys in given:
        values = {k: "default" if v is None else v for k, v in keys.items()}
        found.setdefault(ident, {}).update(values)
    return found


def init(call: Call) -> int:
    """Make a cluster whose first node is this machine."""
    (name,) = call.words
    start = not call.option("no_start")
    node = call.option("node_name") or "node1"
    token = join_token.token(call, node)
    bootstrap = import_module(_BOOTSTRAP)  # the daemons' side is slow to import
    given = settings(call) | {"node_name": node}
    if policy_options.given(call):
        from moorage.model import ipolicy  # noqa: PLC0415 - as bootstrap: slow to load

        given["ipolicy"] = policy_options.policy(call, ipolicy.DEFAULT)
    bootstrap.init(name, settings=given, token=token, start=start)
    call.terminal.print(f"Cluster {name} is made")
    return 0


def destroy(call: Call) -> int:
    """End the cluster."""
    if not call.option("yes_do_it"):
        raise BadInput(
            "destroying the cluster cannot be taken back",
            hint="gnt-cluster destroy --yes-do-it, if you really want to",
        )
    import_module(_BOOTSTRAP).destroy()
    call.terminal.print("The cluster is destroyed")
    return 0


def modify(call: Call) -> int:
    """Change the cluster's settings."""
    changed = settings(call)
    if policy_options.given(call):
        now = call.client.call("QueryClusterInfo")["ipolicy"]
        changed["ipolicy"] = policy_options.policy(call, now)
    if not changed:
        raise BadInput("nothing to change", hint="gnt-cluster modify --help")
    perform(call, "OP_CLUSTER_SET_PARAMS", **changed)
    call.terminal.print("Modified the cluster")
    return 0


# -- looking ---------------------------------------------------------------------------


def verify(call: Call) -> int:
    """Check the whole cluster; the exit status says whether anything is wrong."""
    found = fetch(call, "OP_CLUSTER_VERIFY")
    errors = found.get("errors") or []
    if call.option("json"):
        call.terminal.print(json.dumps(found, indent=2))
    else:
        for line in verified(found):
            call.terminal.print(line)
    return int(bool(errors))


def repair_disk_sizes(call: Call) -> int:
    """Let records take the sizes that devices have."""
    fixed = perform(call, "OP_CLUSTER_REPAIR_DISK_SIZES", instances=call.words)
    for instance, slot, what, value in fixed or ():
        call.terminal.print(f"{instance}: disk/{slot}: {what} is {value} MiB")
    return 0


def verified(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what verify prints."""
    checked = (found.get("checked") or {}).items()
    if checked:
        yield "* Verified " + ", ".join(f"{count} {what}" for what, count in checked)
    errors = found.get("errors") or []
    warnings = found.get("warnings") or []
    for word, findings in (("ERROR", errors), ("WARNING", warnings)):
        for one in findings:
            yield f"  - {word}: {one.get('object')}: {one.get('message')}"
            if one.get("hint"):
                yield f"    hint: {one['hint']}"
    told = [
        f"{len(findings)} {word}{'' if len(findings) == 1 else 's'}"
        for word, findings in (("error", errors), ("warning", warnings))
        if findings
    ]
    yield f"* {' and '.join(told)} found" if told else "* No problem found"


def info(call: Call) -> int:
    """Print the cluster's settings."""
    found = call.client.call("QueryClusterInfo")
    if call.option("json"):
        call.terminal.print(json.dumps(found, indent=2))
        return 0
    for line in lines(cluster(found)):
        call.terminal.print(line)
    return 0


def cluster(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of the cluster."""
    hypervisors = found.get("enabled_hypervisors") or []
    told = found.get("ipolicy")
    return {
        "Cluster name": found.get("name"),
        "Cluster UUID": found.get("uuid"),
        "Creation time": moment(found.get("ctime")),
        "Modification time": moment(found.get("mtime")),
        "Master node": found.get("master"),
        "Tags": ", ".join(found.get("tags") or ()) or "(none)",
        **renew_crypto.authority(found.get("authority") or {}),
        "Default hypervisor": found.get("default_hypervisor")
        or next(iter(hypervisors), ""),
        "Enabled hypervisors": ", ".join(hypervisors),
        "Hypervisor parameters": _maps(found.get("hvparams")),
        "OS parameters": _maps(found.get("osparams")),
        "Cluster parameters": _parameters(found),
        "Default instance parameters": _maps(found.get("beparams")),
        "Default nic parameters": _maps(found.get("nicparams")),
        "Default disk parameters": _maps(found.get("diskparams")),
        **({POLICY: policy_options.shown(told)} if told else {}),
    }


def _parameters(found: Mapping[str, Any]) -> dict[str, Any]:
    shown = {
        "mac prefix": "mac_prefix",
        "gluster storage path": "gluster_storage_dir",
        "lvm volume group": "volume_group_name",
        "file storage path": "file_storage_dir",
        "shared file storage path": "shared_file_storage_dir",
        "default instance allocator": "default_iallocator",
    }
    paths = {
        "OS search path": "os_search_path",
        "ExtStorage Providers search path": "es_search_path",
    }
    return {
        **{word: found.get(key) or "" for word, key in shown.items()},
        **{word: _joined(found[key]) for word, key in paths.items() if key in found},
        "enabled disk templates": _joined(found.get("enabled_disk_templates") or ()),
        "uid pool": shown_uids(found.get("uid_pool") or ()),
        "storage pools": _maps(found.get("storage_pools")) or "",
    }


def _joined(values: Any) -> str:  # noqa: ANN401
    return values if isinstance(values, str) else ", ".join(map(str, values))


def _maps(value: Any) -> Any:  # noqa: ANN401
    """Return nested maps in the order of their keys, lists on one line."""
    if isinstance(value, Mapping):
        return {key: _maps(value[key]) for key in sorted(value)}
    return Flow(value) if isinstance(value, list) else "" if value is None else value


def show_version(call: Call) -> int:
    """Print the versions of software and interfaces."""
    found = call.client.call("QueryClusterInfo")
    shown = {
        "Software version": found.get("software_version") or __version__,
        "Internode protocol": found.get("protocol_version"),
        "Configuration format": found.get("config_version"),
        "OS api version": found.get("os_api_version"),
        "Export interface": found.get("export_version"),
    }
    for word, value in shown.items():
        if value is not None:
            call.terminal.print(f"{word}: {value}")
    return 0


def master(call: Call) -> int:
    """Print the master's name."""
    (name,) = call.client.call("QueryConfigValues", ["master_node"])
    call.terminal.print(str(name))
    return 0


def queue(call: Call) -> int:
    """Close the queue for new jobs, open it, or show which it is."""
    (word,) = call.words
    if word in ("drain", "undrain"):
        call.client.call("SetDrainFlag", word == "drain")
    elif word == "info":
        (drained,) = call.client.call("QueryConfigValues", ["drain_flag"])
        call.terminal.print(f"The drain flag is {'set' if drained else 'unset'}")
    else:
        raise BadInput(
            f"the queue takes drain, undrain or info, not '{word}'",
            hint="gnt-cluster queue info",
        )
    return 0


# -- the program -----------------------------------------------------------------------

SETTINGS = (
    Option(
        ("--enabled-hypervisors",), "what guests may run on: kvm, fake", "NAMES", names
    ),
    Option(
        ("--enabled-disk-templates",), "how disks may be stored", "TEMPLATES", names
    ),
    Option(
        ("--shared-file-storage-dir",),
        "where the shared file system is mounted, on every node",
        "DIR",
    ),
    Option(("--file-storage-dir",), "where files of one node are", "DIR"),
    Option(
        ("--gluster-storage-dir",), "where nodes mount the volumes of Gluster", "DIR"
    ),
    Option(("--vg-name",), "the volume group of plain disks, on every node", "NAME"),
    Option(
        ("-H", "--hypervisor-parameters"),
        "defaults of a hypervisor; may be repeated",
        "NAME:KEY=VALUE,...",
        ident_key_values,
        repeats=True,
    ),
    Option(
        ("-B", "--backend-parameters"),
        "defaults: memory=1G,vcpus=2 and the like",
        "KEY=VALUE,...",
        backend_parameters,
    ),
    Option(
        ("-D", "--disk-parameters"),
        "defaults of a disk template; may be repeated",
        "NAME:KEY=VALUE,...",
        ident_key_values,
        repeats=True,
    ),
    IALLOCATOR._replace(
        flags=("-I", "--default-iallocator"), help="the allocator to ask by default"
    ),
    Option(
        ("--uid-pool",),
        "the users that guests run as, such as 30000-30099,40000",
        "RANGES",
        uid_ranges,
    ),
    *policy_options.OPTIONS,
    policy_options.STANDARD,
)
UIDS = (
    Option(("--add-uids",), "more users that guests run as", "RANGES", uid_ranges),
    Option(("--remove-uids",), "ranges to take out of them", "RANGES", uid_ranges),
)

PROGRAM = Program(
    "gnt-cluster",
    "make, look at, check and change the cluster",
    (
        Command(
            "init",
            init,
            "Make a cluster whose first node is this machine",
            (Operand("NAME"),),
            (
                *SETTINGS,
                Option(("-m", "--mac-prefix"), "first three bytes of MACs", "MAC"),
                Option(("--primary-ip",), "where the node's agent listens", "IP"),
                *join_token.OPTIONS,
                Option(("--node-name",), "name of the first node (node1)", "NAME"),
                Option(("--no-start",), "do not start the master"),
                moot("--no-lvm-storage", "LVM is used where --vg-name names a group"),
                moot("--no-drbd-storage", "no template uses DRBD"),
                moot("--no-etc-hosts", "/etc/hosts is never written"),
                moot("--no-ssh-init", "nodes are reached over TLS, not by ssh"),
                DEBUG,
            ),
            examples=(
                Example(
                    "gnt-cluster init --shared-file-storage-dir=/srv/shared demo",
                    "with a directory that all nodes see",
                ),
            ),
        ),
        Command(
            "info", info, "Show the cluster's settings", (), (JSON, DEBUG)
        )._replace(aliases=("show",)),
        Command(
            "verify",
            verify,
            "Check the whole cluster; fail if anything is wrong",
            (),
            JOB,
        ),
        Command(
            "repair-disk-sizes",
            repair_disk_sizes,
            "Correct the recorded sizes of disks whose devices have another one",
            (Operand("INSTANCE", 0, None),),
            JOB,
            examples=(
                Example("gnt-cluster repair-disk-sizes web1", "the disks of web1"),
            ),
        ),
        Command(
            "modify",
            modify,
            "Change the cluster's settings",
            (),
            (*SETTINGS, *UIDS, *pool_options.OPTIONS, *JOB),
            examples=(
                Example(
                    "gnt-cluster modify -D ext:access=userspace",
                    "guests open ext disks themselves",
                ),
                Example(
                    "gnt-cluster modify --uid-pool=30000-30099",
                    "guests run as these users, each as one of its own",
                ),
                Example(
                    "gnt-cluster modify --add-pool nas1 san",
                    "a storage pool of the provider san; gnt-storage pool connect "
                    "says where",
                ),
            ),
        ),
        renew_crypto.COMMAND,
        *tags.commands("gnt-cluster"),
        Command(
            "version", show_version, "Show versions of software and interfaces"
        )._replace(options=(DEBUG,)),
        Command(
            "queue",
            queue,
            "Close the queue for new jobs, open it, or show which it is",
            (Operand("drain|undrain|info"),),
            (DEBUG,),
            examples=(Example("gnt-cluster queue drain", "before an upgrade"),),
        ),
        Command("getmaster", master, "Show which node is the master")._replace(
            options=(DEBUG,)
        ),
        Command(
            "destroy",
            destroy,
            "End the cluster; this cannot be taken back",
            (),
            (Option(("--yes-do-it",), "really"), DEBUG),
        ),
    ),
)


def main() -> int:
    """Run gnt-cluster."""
    return run(PROGRAM)
