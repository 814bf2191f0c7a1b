# SPDX-License-Identifier: BSD-2-Clause
"""What the service keeps; every change of it goes through the verbs."""

from .backend import Backend, StorageDomain
from .heartbeat import Heartbeat
from .image import Image
from .message import Message
from .operation import Operation, Outbox
from .quota import Limit, Usage
from .server import Server
from .snapshot import Snapshot
from .story import StoryEntry
from .transfer import Transfer
from .volume import Attachment, Volume
from .volume_type import ProjectType, TypeAccess, VolumeType
