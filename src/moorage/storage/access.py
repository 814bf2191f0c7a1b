# SPDX-License-Identifier: BSD-2-Clause
"""How a guest reaches a disk: by a device of its node's kernel, or by itself."""

from collections.abc import Mapping
from typing import Any

from moorage.errors import BadInput

KERNELSPACE = "kernelspace"
USERSPACE = "userspace"


def checked_access(params: Mapping[str, Any]) -> str:
    """Return how a disk with some parameters is reached.

    Raises
    ------
    BadInput
        If there is no such way.
    """
    access = str(params.get("access", KERNELSPACE))
    if access not in (KERNELSPACE, USERSPACE):
        raise BadInput(
            f"access is {KERNELSPACE} or {USERSPACE}, not '{access}'", access=access
        )
    return access


def is_userspace(params: Mapping[str, Any]) -> bool:
    """Whether the hypervisor reaches the disk by its URI."""
    return params.get("access") == USERSPACE
