# SPDX-License-Identifier: BSD-2-Clause
"""The tiny guest: a Linux of a few megabytes that boots in seconds, even emulated.

It is Debian's cloud kernel with busybox, and answers in two places: a shell on the
serial console, and commands on a channel of its own
(:class:`moorage.testing.guest.Guest` is the client).
"""

from .build import build, prepare, usual_place, write_image
from .kernel import fetch_kernel
from .system import ARGUMENTS

__all__ = [
    "ARGUMENTS",
    "build",
    "fetch_kernel",
    "prepare",
    "usual_place",
    "write_image",
]
