# SPDX-License-Identifier: BSD-2-Clause
"""QEMU guests: command line and block nodes (pure), monitor, process, migration."""

from .hypervisor import Kvm
