# SPDX-License-Identifier: BSD-2-Clause
"""What ``OP_INSTANCE_SET_PARAMS`` can be asked for."""

from functools import cached_property
from typing import Annotated, Any

from moorage.jobs import Case, rights
from moorage.jobs.unread import Moot, Unsupported
from moorage.model import Instance, Node
from moorage.model.kinds import Mebibytes, Rate
from moorage.ops.instance.base import OnInstance


class ChangeRequest(OnInstance, frozen=True, kw_only=True):
    """Changes of an instance: of its disks, its cards, its parameters.

    Attributes
    ----------
    disks
        Changes: action, disk (slot, name or uuid), parameters.
    disk_template
        With new disks among the changes, the template of those that name none; without
        any, what all disks are to be converted to.
    pool
        The storage pool that all disks are to be in.
    ext_params
        Parameters of the template or the provider, for disks that are converted.
    remote_node
        The second node, for a template whose data the cluster mirrors.
    rate
        How much is copied in a second at most; 0 for no limit.
    force_params
        Accept parameters that a disk's provider does not list.
    wait_for_sync
        Whether the job lasts until both copies of new mirrored disks are the same.
    ignore_capacity
        Whether it may get more memory or larger disks than there is room for.
    file_storage_dir
        For new image files: a directory below the cluster's.
    passing
        Whether second copies come or go for a journey alone: no template need be
        enabled for that.
    keep_disks
        Forget removed disks without destroying their data.
    nics
        Changes: action, card (number, name or uuid), parameters.
    conflicts_check
        Whether an address of a card in no network must not be one of a network's.
    hvparams
        Parameters of the hypervisor; the value ``default`` drops one.
    beparams
        Memory (``memory``, in MiB), processors (``vcpus``) and the like; the value
        ``default`` drops one.
    osparams
        OS parameters; the value ``default`` drops one.
    os_name
        Another OS definition, with variant; nothing is installed.
    offline
        Mark it as not to be started, or take the mark off.
    osparams_private
        OS parameters that are shown to nobody.
    pnode
        Another primary node for an instance that is down; nothing is moved there.
    hotplug
        Refuse if no guest runs; what can be plugged is plugged at once in any case.
    ignore_ipolicy
        Whether the policy of the node group does not count.
    runtime_mem
        What a guest that runs has of its memory from now on, until it ends: between its
        ``minmem`` and its ``maxmem``.
    force
        Whether it may have less than its ``minmem``.
    """

    disks: Annotated[
        list[list[int | str | dict[str, Any] | None]], rights.CHANGED_DISKS
    ] = []
    disk_template: str | None = None
    pool: str | None = None
    ext_params: Annotated[dict[str, Any], rights.DISK] = {}
    remote_node: str | None = None
    rate: Rate = 0
    force_params: bool = False
    wait_for_sync: bool = True
    ignore_capacity: bool = False
    file_storage_dir: str | None = None
    passing: bool = False
    keep_disks: bool = False
    nics: list[list[int | str | dict[str, Any] | None]] = []
    conflicts_check: bool = True
    hvparams: Annotated[dict[str, Any], rights.HYPERVISOR] = {}
    beparams: dict[str, Any] = {}
    osparams: dict[str, Any] = {}
    osparams_private: dict[str, Any] = {}
    os_name: str | None = None
    offline: bool | None = None
    pnode: str | None = None
    hotplug: bool = False
    hotplug_if_possible: Annotated[
        bool, Moot("what can be plugged is plugged at once")
    ] = False
    force: bool = False
    force_variant: Annotated[
        bool, Unsupported("an OS has the variants that its list names")
    ] = False
    ignore_ipolicy: bool = False
    runtime_mem: Mebibytes | None = None

    @property
    def converts(self) -> bool:
        """Whether disks get other storage."""
        adds = any(one[0] == "add" for one in self.disks)
        return bool(self.disk_template or self.pool) and not adds

    @property
    def of_disks(self) -> dict[str, Any]:
        """What is said for all new disks and volumes: fields of a `DiskSpec`."""
        return {"force": self.force_params, "folder": self.file_storage_dir or ""}


class Changes(Case[ChangeRequest]):
    """One part of what is changed."""

    @cached_property
    def instance(self) -> Instance:
        """The instance as it is."""
        return self.request.instance(self.view)

    @cached_property
    def node(self) -> Node:
        """Its node."""
        return self.view.config.home(self.instance)
