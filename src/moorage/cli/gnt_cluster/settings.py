# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the cluster, and changing them."""

from typing import Any

from moorage.cli import nic_options, policy_options, pool_options
from moorage.cli.command import Call, Command, Example, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import (
    backend_parameters,
    check_changed,
    ident_key_values,
    key_values,
    nested,
    uid_ranges,
)
from moorage.cli.options import DISK_PARAMETERS, IALLOCATOR, JOB, names, truth
from moorage.errors import BadInput

from . import unneeded


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
        uid_pool="uid_pool",
        add_uids="add_uids",
        remove_uids="remove_uids",
        candidate_pool_size="candidate_pool_size",
        max_running_jobs="max_running_jobs",
        enabled_user_shutdown="user_shutdown",
        ndparams="node_parameters",
    )
    for field in ("add_pools", "remove_pools"):
        if call.option(field):
            found[field] = call.option(field)
    if call.option("nic_parameters"):
        found["nicparams"] = nic_options.params(call)
    if call.option("backend_parameters"):
        found["beparams"] = {"default": call.option("backend_parameters")}
    for field, option in _NESTED.items():
        if call.option(option):
            found[field] = nested(call.option(option))
    return found


_NESTED = {"hvparams": "hypervisor_parameters", "diskparams": "disk_parameters"}


def modify(call: Call) -> int:
    """Change the cluster's settings."""
    for flag, option in (("-H", _NESTED["hvparams"]), ("-D", _NESTED["diskparams"])):
        check_changed(flag, call.option(option))
    changed = settings(call)
    if policy_options.given(call):
        now = call.client.call("QueryClusterInfo")["ipolicy"]
        changed["ipolicy"] = policy_options.policy(call, now)
    if not changed:
        raise BadInput("nothing to change", hint="gnt-cluster modify --help")
    perform(call, "OP_CLUSTER_SET_PARAMS", **changed)
    call.terminal.print("Modified the cluster")
    return 0


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
    DISK_PARAMETERS,
    IALLOCATOR._replace(
        flags=("-I", "--default-iallocator"), help="the allocator to ask by default"
    ),
    Option(
        ("-C", "--candidate-pool-size"),
        "how many nodes are to be master candidates",
        "N",
        int,
    ),
    Option(("-m", "--mac-prefix"), "first three bytes of MACs: aa:00:00", "MAC"),
    Option(
        ("--node-parameters",),
        "node parameters where neither a node nor its group has others",
        "KEY=VALUE,...",
        key_values,
    ),
    Option(
        ("--user-shutdown",),
        "whether a guest that powers itself off may stay off",
        "yes|no",
        truth,
    ),
    Option(
        ("--uid-pool",),
        "the users that guests run as, such as 30000-30099,40000",
        "RANGES",
        uid_ranges,
    ),
    nic_options.DEFAULTS,
    *policy_options.OPTIONS,
    policy_options.STANDARD,
)
_JOBS = Option(("--max-running-jobs",), "how many jobs work at once", "N", int)
_UIDS = (
    Option(("--add-uids",), "more users that guests run as", "RANGES", uid_ranges),
    Option(("--remove-uids",), "ranges to take out of them", "RANGES", uid_ranges),
)

MODIFY = Command(
    "modify",
    modify,
    "Change the cluster's settings",
    (),
    (
        *SETTINGS,
        *_UIDS,
        _JOBS,
        *unneeded.MODIFY,
        *unneeded.SHARED,
        *pool_options.OPTIONS,
        *JOB,
    ),
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
            "a storage pool of the provider san; gnt-storage pool connect says where",
        ),
    ),
)
