# SPDX-License-Identifier: BSD-2-Clause
"""What the wire itself refuses, and how services word what they refuse."""

from moorage_cloud.errors import Refusal


class Unauthorized(Refusal):
    """Nobody knows who asks."""

    code = 401
    name = "unauthorized"


class NoSuchMethod(Refusal):
    """The path is there, and not for this method."""

    code = 405
    name = "badMethod"


class NotAcceptable(Refusal):
    """The service does not speak the version that is asked for."""

    code = 406
    name = "computeFault"


class Changed(Refusal):
    """It is not any more what who asks believes that it is."""

    code = 412
    name = "preconditionFailed"


class TooLarge(Refusal):
    """The body is larger than any request needs."""

    code = 413
    name = "overLimit"
