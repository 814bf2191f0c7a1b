# SPDX-License-Identifier: BSD-2-Clause
"""How many seconds a program that a node runs may last, before it is ended.

What copies whole volumes has limits of its own, beside the verb that does it; a
provider's settings on a node may give each of its scripts another one.
"""

COMMAND = 900.0
"""A command of a template, a script of a provider or an OS: Ganeti's limit."""
HOOK = 900.0
"""A script of a hook."""
ADMIN_SCRIPT = 240.0
"""A script of the administrator's that the cluster asks for by its name."""
ALLOCATOR = 300.0
"""An allocator that says where instances go: a job waits for it."""
WIRING = 30.0
"""A command, or an administrator's script, that connects a network card."""
LOOK = 30.0
"""A program that only reads how large an image is."""
CAPACITY = 4.0
"""``capacity`` of a provider: a node's facts wait for it."""
