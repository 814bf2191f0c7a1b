# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance reinstall``: an OS definition writes to the disks again."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec.structs import replace

from moorage.errors import BadInput, WrongState
from moorage.jobs import Question, Sought, Task, View
from moorage.jobs.unread import Unsupported
from moorage.model import Instance
from moorage.ops.asking import node_tasks
from moorage.ops.guests import osparams
from moorage.ops.guests.liveness import check_nowhere_else, seek
from moorage.ops.instance.base import OnInstance, check_at_rest, with_disks
from moorage.ops.merging import merged


class InstanceReinstall(OnInstance, frozen=True, kw_only=True):
    """Install an OS on the disks of an instance that is down: what they held is lost.

    Attributes
    ----------
    os_type
        Another OS than it has, with variant.
    osparams
        OS parameters that it gets and keeps.
    osparams_private
        OS parameters that it gets and keeps, and that are shown to nobody.
    osparams_secret
        OS parameters for this installation, which nobody keeps.
    clear_osparams
        Whether it loses the OS parameters that it had.
    clear_osparams_private
        Whether it loses the private OS parameters that it had.
    remove_osparams
        Names of the OS parameters that it loses.
    remove_osparams_private
        Names of the private OS parameters that it loses.
    """

    op_id = "OP_INSTANCE_REINSTALL"

    os_type: str | None = None
    osparams: dict[str, Any] = {}
    osparams_private: dict[str, Any] = {}
    osparams_secret: dict[str, Any] = {}
    clear_osparams: bool = False
    clear_osparams_private: bool = False
    remove_osparams: tuple[str, ...] = ()
    remove_osparams_private: tuple[str, ...] = ()
    force_variant: Annotated[
        bool, Unsupported("an OS has the variants that its list names")
    ] = False

    def as_installed(self, view: View) -> Instance:
        """Return the instance with the OS and the parameters that it keeps."""
        old = self.instance(view)
        return replace(
            old,
            os=self.os_type or old.os,
            osparams=changed(
                {} if self.clear_osparams else old.osparams,
                self.osparams,
                self.remove_osparams,
            ),
            osparams_private=changed(
                {} if self.clear_osparams_private else old.osparams_private,
                self.osparams_private,
                self.remove_osparams_private,
            ),
        )

    def _with_secrets(self, view: View) -> Instance:
        kept = self.as_installed(view)
        private = kept.osparams_private | self.osparams_secret
        return replace(kept, osparams_private=private)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and what its node can install."""
        yield from OnInstance.questions(self, view)
        yield node_tasks.oses_on(self.instance(view).primary_node)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest, which would write there, too."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse while it runs, without disks, and an OS that is not there."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        check_at_rest(view, instance, "reinstalled")
        check_nowhere_else(view, instance)
        if not instance.disks:
            raise WrongState(f"instance {instance.name} has no disks to install on")
        new = self._with_secrets(view)
        if not new.os:
            raise BadInput(
                f"instance {instance.name} has no OS", hint="name one: -o OS"
            )
        if self.os_type:
            osparams.check_offered(view.config, self.os_type)
        node = view.config.home(instance)
        osparams.check(view, node, new.os, osparams.of_instance(new))

    def tasks(self, view: View) -> Iterator[Task]:
        """Install, with the disks attached for it; then record what is there."""
        old, new = self.instance(view), self._with_secrets(view)
        node = view.config.home(old)
        yield osparams.verify(view, new, node)
        yield from with_disks(view, old, node, self._installed(view, new))

    def _installed(self, view: View, new: Instance) -> Iterator[Task]:
        old, kept = self.instance(view), self.as_installed(view)
        node, disks = view.config.home(old), view.config.disks_of(old)
        yield osparams.install(view, new, disks, node, again=True)
        if kept != old:
            what = {
                name: getattr(kept, name)
                for name in ("os", "osparams", "osparams_private")
            }
            yield view.change(f"record what is on {old.name}", old, **what)


def changed(
    old: Mapping[str, Any], given: Mapping[str, Any], gone: tuple[str, ...]
) -> dict[str, Any]:
    """Return OS parameters with changes, and without those that are gone.

    In `given`, ``default`` and null take a parameter away.
    """
    kept = {name: value for name, value in old.items() if name not in gone}
    return merged(kept, given)
