# SPDX-License-Identifier: BSD-2-Clause
"""Defaults of a cluster, checked where they are set as the requests would check them.

One bad default would stop every later disk or guest, far from whoever set it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from moorage import backend
from moorage.errors import BadInput, MoorageError
from moorage.hypervisors import KVM, USUAL, check_hypervisor
from moorage.model import DISKLESS, Cluster, hvparams, uidpool
from moorage.ops.merging import check_diskparams
from moorage.ops.planning import allocators
from moorage.storage import TEMPLATES

_MOST = 1000
"""The highest number that a setting can be."""


def checks(cluster: Cluster) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each default, as an option that sets it, and a check that may refuse it."""
    for name in cluster.enabled_hypervisors:
        yield f"--enabled-hypervisors {name}", partial(check_hypervisor, name)
    for name, own in sorted(cluster.hvparams.items()):
        yield f"-H {name}", partial(check_hvparams, name, own)
    for name, own in sorted(cluster.diskparams.items()):
        yield f"-D {name}", partial(check_diskparams, name, own)
    for profile, own in sorted(cluster.beparams.items()):
        yield "-B", partial(check_beparams, profile, own)
    yield "-I", partial(allocators.check, cluster.default_iallocator)
    option, words = "--default-iallocator-params", cluster.default_iallocator_params
    yield option, partial(allocators.check_words, words)
    yield "--uid-pool", partial(uidpool.checked, cluster.uid_pool)


def check_numbers(cluster: Cluster) -> None:
    """Raise `BadInput` for a number that a cluster cannot have."""
    for field in ("candidate_pool_size", "max_running_jobs"):
        check_number(field, getattr(cluster, field))


def check_number(field: str, value: object) -> None:
    """Raise `BadInput` for a number that a cluster cannot have in a field."""
    if type(value) is not int or not 1 <= value <= _MOST:
        what = field.replace("_", " ")
        raise BadInput(f"{what} is a number from 1 to {_MOST}, not {value}")


def check(cluster: Cluster) -> None:
    """Raise `BadInput` for the first default that no request could be met with."""
    for _, refuses in checks(cluster):
        refuses()


def problems(cluster: Cluster) -> Iterator[tuple[str, MoorageError]]:
    """Yield the option that sets each bad default, and what is wrong with it."""
    for option, refuses in checks(cluster):
        try:
            refuses()
        except MoorageError as error:
            yield option, error


def check_some_hypervisors(names: Collection[str]) -> None:
    """Raise `BadInput` unless these can be all hypervisors of a cluster."""
    if not names:
        raise BadInput(
            "at least one hypervisor must be enabled",
            hint=f"--enabled-hypervisors={USUAL}",
        )
    for name in names:
        check_hypervisor(name)


def check_known_templates(names: Iterable[str]) -> None:
    """Raise `BadInput` if there is no such disk template."""
    for name in names:
        if name not in TEMPLATES and name != DISKLESS:
            known = ", ".join(sorted({*TEMPLATES, DISKLESS}))
            raise BadInput(f"there is no disk template '{name}': there is {known}")


def check_some_templates(names: Collection[str]) -> None:
    """Raise `BadInput` unless these can be all disk templates of a cluster."""
    if not names:
        raise BadInput(
            "at least one disk template must be enabled",
            hint=f"--enabled-disk-templates={DISKLESS}",
        )
    check_known_templates(names)


def check_hvparams(name: str, own: Mapping[str, Any]) -> None:
    """Raise `BadInput` for parameters that a hypervisor cannot honour."""
    check_hypervisor(name)
    hvparams.check(KVM, own)  # fake takes what kvm takes


def check_beparams(profile: str, own: Mapping[str, Any]) -> None:
    """Raise `BadInput` for memory or processors that no instance could have."""
    if profile != "default":
        raise BadInput(f"back-end parameters have no profile '{profile}'")
    backend.check(own)
