# SPDX-License-Identifier: BSD-2-Clause
"""Disk templates: pure functions from facts to commands."""

from moorage.disk_templates import Mirror, Reach
from moorage.model import Provider

from .base import Template, VolumeRequest, nothing
from .capabilities import Can, Capabilities
from .command import (
    Command,
    Confined,
    Content,
    Holder,
    Opened,
    Outcome,
    Output,
    Progress,
    Site,
    Steps,
    Where,
)
from .mirrored import Mirrored
from .templates import TEMPLATES, check_made, template_named
from .templates.ext import metadata
