# SPDX-License-Identifier: BSD-2-Clause
"""A cluster's first and last moments: ``gnt-cluster init`` and ``destroy``."""

import asyncio
import contextlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import ValidationError, convert
from msgspec.structs import replace

from moorage import durable
from moorage.directories import MASTER_DIR
from moorage.errors import BadInput, Exists, Failed, MoorageError, WrongState
from moorage.model import (
    Change,
    Cluster,
    Config,
    Disk,
    Instance,
    Node,
    NodeGroup,
    ipolicy,
    nicparams,
)
from moorage.model.addresses import is_v6
from moorage.model.master_address import held_address
from moorage.model.misfit import misfit
from moorage.model.token import Token, from_text, to_text
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates.authority import Authority
from moorage.ops import addresses
from moorage.ops.cluster import (
    defaults,
    image_directories,
    master_address,
    volume_groups,
)
from moorage.ops.cluster.merged_settings import card_defaults
from moorage.ops.merging import merged
from moorage.ops.ndparams import checked
from moorage.ops.new_names import is_machine_name
from moorage.ops.volumes.directories import SETTINGS
from moorage.protocol import (
    EnrolNode,
    ExpelNode,
    LeaveCluster,
    LookForAddress,
    RunHooks,
    Verb,
    silent,
)
from moorage.storage.templates import TEMPLATES
from moorage.storage.validation import check_image_directory
from moorage.store import (
    ConfigStore,
    create,
    inspect,
    loaded,
    require_cluster,
    store_at,
)
from moorage.store.etcd import EtcdSettings, to_bytes
from moorage.units import counted

from . import etcd_prefix, master, master_process
from .paths import KEPT, MasterPlaces, master_places
from .state_directory import as_owner, claim

R = TypeVar("R")


def init(
    name: str,
    *,
    settings: Mapping[str, Any],
    token: str | None = None,
    start: bool = True,
    store: str = "",
) -> None:
    """Make a cluster whose first node and master is the node of `token`.

    Parameters
    ----------
    settings
        Fields of :class:`~moorage.model.Cluster`, and ``node_name``.
    store
        Where in etcd the state is to be, or a file that says it; empty for a file of
        SQLite's.

    Raises
    ------
    Exists
        If there is one in this place already, or what may belong to one.
    WrongState
        If the making of one was interrupted here, or is under way.
    MoorageError
        If a setting is off or the node cannot be let in; nothing is left behind.
    """
    places = master_places()
    _check_free(places)
    if not is_machine_name(name):
        raise BadInput(f"'{name}' is not a cluster name")
    invitation = _invitation(token)
    change = first(name, dict(settings), invitation)
    etcd = etcd_prefix.of_new(store, change) if store else None
    as_owner(places.root, _found, places, change, invitation, etcd)
    if start:
        master_process.start(places)


def _found(
    places: MasterPlaces, change: Change, invitation: Token, etcd: EtcdSettings | None
) -> None:
    if etcd:
        asyncio.run(etcd_prefix.check_free(etcd))
    _begin(places)
    try:
        if etcd:
            durable.write(places.etcd, to_bytes(etcd))
        places.keys.mkdir(mode=0o700, exist_ok=True)
        asyncio.run(_make(places, change, invitation))
    except BaseException:
        _clear(places)
        raise
    places.founding.unlink()


def _check_free(places: MasterPlaces) -> None:
    """Refuse to make a cluster over anything of another one."""
    if places.founding.exists():
        master_process.check_cluster(places)
    kept = [*places.root.glob(f"{places.store.name}*"), *places.keys.glob("*")]
    for path in (*kept, *places.root.glob(places.etcd.name)):
        if path.name != f"{places.store.name}.lock":
            raise Exists(
                f"there is a cluster in {places.root}, or what is left of one: {path}",
                hint="gnt-cluster info",
            )


def _begin(places: MasterPlaces) -> None:
    """Leave a mark until the cluster is whole: what is here is ours alone."""
    claim(places.root, KEPT)
    try:
        os.close(os.open(places.founding, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        master_process.check_cluster(places)


def _invitation(token: str | None) -> Token:
    if not token:
        raise BadInput(
            "the first node can be let in with its token only",
            hint="start its agent (moorage agent DIR), then give --token-file",
        )
    return from_text(token)


async def _make(places: MasterPlaces, change: Change, token: Token) -> None:
    cluster = next(one for one in change.put if isinstance(one, Cluster))
    node = next(one for one in change.put if isinstance(one, Node))
    authority = Authority.make(places.keys, cluster.cluster_name)
    # The node comes last: who is interrupted can still tell it to leave.
    store = store_at(places.store, new=True)
    try:
        await create(store, change)
    finally:
        await store.close()
    # In by the address that will be used: the token proves that it is the same node.
    await _let_in(authority, cluster, node, replace(token, address=node.primary_ip))


async def _let_in(
    authority: Authority, cluster: Cluster, node: Node, token: Token
) -> None:
    """Let the first node in; without the storage that was named it leaves again."""
    nodes = HttpNodes(authority)
    try:
        await _told(nodes, node, EnrolNode(token=to_text(token)))
        wanted = image_directories.of(cluster)
        if wanted:
            call = image_directories.asking(wanted)
            facts = await _told(nodes, node, call)
            image_directories.check_there(node, facts, wanted)
        if cluster.volume_group_name:
            asked = volume_groups.asking(cluster.volume_group_name)
            facts = await _told(nodes, node, asked)
            volume_groups.check_there(node, facts, cluster.volume_group_name)
        if address := held_address(cluster):
            there = await _told(nodes, node, LookForAddress(address=address))
            master_address.check_there(node, there, address)
        await _run_hooks(nodes, node, cluster, 1, "init", "OP_CLUSTER_POST_INIT")
    except BaseException:
        with contextlib.suppress(MoorageError):
            await _told(nodes, node, ExpelNode())
        raise
    finally:
        await nodes.close()


async def _run_hooks(
    nodes: HttpNodes, node: Node, cluster: Cluster, term: int, what: str, op_code: str
) -> None:
    """Run the hooks after a cluster was made, or before it ends; say which failed."""
    path = f"cluster-{what}"
    env = {
        "OP_CODE": op_code,
        "OBJECT_TYPE": "CLUSTER",
        "OP_TARGET": cluster.cluster_name,
        "CLUSTER": cluster.cluster_name,
        "MASTER": node.name,
        "DATA_DIR": MASTER_DIR,
    }
    call = RunHooks(operation=path, paths=(path,), phase="post", env=env)
    try:
        found = await nodes.call(node, call, term, silent)
    except MoorageError as error:
        told = [f"the hooks of {path} did not run: {error.message}"]
    else:
        runs = [one for one in found.runs if one.problem]
        told = [f"hook {one.script} on node {node.name}: {one.problem}" for one in runs]
    for one in told:
        sys.stderr.write(f"Warning: {one}\n")


async def _told(nodes: HttpNodes, node: Node, call: Verb[R]) -> R:
    """Return what a node answers to the first words of a cluster."""
    return await nodes.call(node, call, 1, silent)


def _clear(places: MasterPlaces) -> None:
    if places.etcd.exists():
        places.founding.touch()  # what etcd has cannot be removed while it is away
        asyncio.run(etcd_prefix.forget(places))
    shutil.rmtree(places.keys, ignore_errors=True)
    for path in places.root.glob(f"{places.store.name}*"):
        path.unlink()
    durable.remove(places.etcd)
    locks = (places.lock, places.supervisor, places.importing)
    for path in (*locks, places.pid, places.founding):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # its log may be of use
        places.root.rmdir()


def first(name: str, settings: dict[str, Any], token: Token) -> Change:
    """Return the first configuration of a cluster: a group, a node, itself.

    Parameters
    ----------
    settings
        As of :func:`init`; it is used up.
    token
        The node's invitation.

    Raises
    ------
    BadInput
        If a setting is off.
    """
    now = time.time()

    def fresh() -> dict[str, Any]:
        return {"uuid": str(uuid.uuid4()), "ctime": now, "mtime": now}

    address = settings.pop("primary_ip", None) or token.address
    secondary = settings.pop("secondary_ip", None) or address
    version = settings.pop("ip_version", 0)
    if version and is_v6(address) != (version == 6):
        raise BadInput(
            f"the node is reached at {address}, which is no IPv{version} address",
            hint="gnt-cluster init --primary-ip ADDRESS",
        )
    group = NodeGroup(name="default", **fresh())
    node = Node(
        name=settings.pop("node_name", None) or "node1",
        primary_ip=address,
        secondary_ip=secondary,
        port=token.port,
        group=group.uuid,
        pins=(token.fingerprint,),
        **fresh(),
    )
    known = {"cluster_name": name, "master_node": node.uuid}
    known |= master_address.of_new(settings, address)
    given = {key: value for key, value in settings.items() if value is not None}
    given["ndparams"] = merged({}, checked(given.get("ndparams") or {}))
    for field in ("hvparams", "diskparams", "beparams"):
        told = given.get(field, {})
        given[field] = {name: merged({}, own) for name, own in told.items()}
    given.setdefault("enabled_disk_templates", tuple(sorted(TEMPLATES)))
    own = given.get("nicparams", {})
    given["nicparams"] = card_defaults({nicparams.DEFAULT: nicparams.INITIAL}, own)
    try:
        cluster = convert(fresh() | given | known, Cluster)
    except ValidationError as error:
        raise BadInput(f"cluster settings: {misfit(error)}") from None
    _check(cluster, node)
    return Change((group, node, cluster))


def _check(cluster: Cluster, node: Node) -> None:
    if not is_machine_name(node.name):
        raise BadInput(f"'{node.name}' is not a node name")
    defaults.check_numbers(cluster)
    nicparams.checked_prefix(cluster.mac_prefix)
    addresses.check(node.primary_ip, "primary", "--primary-ip")
    addresses.check(node.secondary_ip, "secondary", "--secondary-ip")
    defaults.check_some_templates(cluster.enabled_disk_templates)
    defaults.check_some_hypervisors(cluster.enabled_hypervisors)
    defaults.check(cluster)
    ipolicy.changed({}, cluster.ipolicy)
    for field in (*SETTINGS, "gluster_storage_dir"):
        check_image_directory(field, getattr(cluster, field))


def destroy() -> None:
    """End the cluster of this place: its master, its store and its keys.

    One whose making was interrupted is cleared away.

    Raises
    ------
    NotFound
        If there is none.
    WrongState
        If it has instances, disks, or nodes besides the master's.
    """
    places = master_places()
    if places.founding.exists():
        as_owner(places.root, _dissolve, places, MoorageError)
        return
    master_process.check_cluster(places)
    if places.etcd.exists():  # who stops gives the lead away: it is refused before
        as_owner(places.root, _check_empty_now, places)
    was_running = master_process.stop(places)
    try:
        as_owner(places.root, _dissolve, places)
    except BaseException:
        if was_running:
            master_process.start(places)
        raise
    places.socket.unlink(missing_ok=True)


def _dissolve(places: MasterPlaces, *passed_over: type[Exception]) -> None:
    """Let the node go, which may be in where the cluster was only begun; clear up."""
    with contextlib.suppress(*passed_over):
        asyncio.run(_leave(places))
    _clear(places)


async def _leave(places: MasterPlaces) -> None:
    """Let the last node go, if the cluster is empty."""
    nodes = HttpNodes(master.authority(places))
    config_store, _ = await ConfigStore.open(store_at(places.store))
    try:
        require_cluster(config_store)
        _check_empty(config_store.config)
        cluster, term = config_store.config.cluster, config_store.term
        last = config_store.config.node(cluster.master_node)
        await _run_hooks(nodes, last, cluster, term, "destroy", "OP_CLUSTER_DESTROY")
        # A node that gives no answer forgets the cluster when it is let in elsewhere.
        with contextlib.suppress(Failed):
            await nodes.call(last, LeaveCluster(), term, silent)
    finally:
        await nodes.close()
        await config_store.close()


def _check_empty_now(places: MasterPlaces) -> None:
    config, _ = loaded(inspect(places.store, live=True).records)
    if config.objects:
        _check_empty(config)


def _check_empty(config: Config) -> None:
    names = [one.name for one in config.named(Instance)]
    disks = [one.label for one in config.all(Disk)]  # volumes nobody else knows of
    master_node = config.cluster.master_node
    nodes = [n.name for n in config.named(Node) if n.uuid != master_node]
    found = {"instance": names, "disk": disks, "other node": nodes}
    for what, left in found.items():
        if left:
            raise WrongState(
                f"the cluster has {counted(len(left), what)}: {', '.join(left[:5])}",
                hint=f"gnt-{what.split()[-1]} remove {left[-1]}",
            )
