# SPDX-License-Identifier: BSD-2-Clause
"""The words for where a volume or a snapshot stands: one spelling, that of clients."""

from enum import StrEnum


class Status(StrEnum):
    """Where a volume stands."""

    CREATING = "creating"
    AVAILABLE = "available"
    ATTACHING = "attaching"
    IN_USE = "in-use"
    DETACHING = "detaching"
    EXTENDING = "extending"
    DELETING = "deleting"
    DELETED = "deleted"
    ERROR = "error"
    ERROR_DELETING = "error_deleting"
    MAINTENANCE = "maintenance"
    AWAITING_TRANSFER = "awaiting-transfer"


class Verb(StrEnum):
    """What is done to a volume by asking a cluster."""

    ATTACH = "attach"
    DETACH = "detach"
    EXTEND = "extend"
    DELETE = "delete"
    CHECK = "check"  # whether its data is there
    COPY = "copy"  # its data is made: of a volume, a snapshot or an image


class Act(StrEnum):
    """One thing that a cluster is asked for; a verb is one or several of them.

    A cluster does it with an instance, or with a disk that no instance has.
    """

    TAKE = "take"  # have the volume as a disk: make its data, or adopt what is there
    BORROW = "borrow"  # have what it is a copy of as a disk, as it is
    COPY = "copy"  # copy that in time; the copy is a disk that no instance has
    RETURN = "return"  # have what it is a copy of no more
    LEAVE = "leave"  # have the disk no more; its data stays
    GROW = "grow"
    DESTROY = "destroy"  # have neither the disk nor its data
