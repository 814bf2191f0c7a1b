# SPDX-License-Identifier: BSD-2-Clause
"""Small clusters with something of everything, and one request of each kind to try.

Whoever breaks things (crashes, lost replies, failing commands) runs these requests.
"""

from .cellar import STORED, cellar
from .harbour import LOST, LUN, SCENARIOS, harbour
from .pier import MIRRORS, pier
from .requests import Scenario
