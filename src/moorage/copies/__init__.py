# SPDX-License-Identifier: BSD-2-Clause
"""Copies of the master's state on the candidates, kept equal commit by commit."""

from .follower import Pace
from .log import CommitLog
from .replication import Replication
