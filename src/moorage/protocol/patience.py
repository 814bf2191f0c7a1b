# SPDX-License-Identifier: BSD-2-Clause
"""How often a node that gives no answer is asked again before it is given up.

Two layers ask again, each for what it alone knows. The way to the nodes
(:mod:`moorage.node.calling.client`) knows that a connection was not made, so nothing
was sent: it makes it anew, for whoever asks. A job (:mod:`moorage.jobs.asking`) knows
what it can do without, and what may be done twice: it makes the whole attempt anew. So
a step that a job can do without waits for the product of both, in seconds:

====================================  ===========  ===============================
a node that                           one attempt  with a job's rests
====================================  ===========  ===============================
has no power (connections of 5 s)     16           51, in three attempts
has power, and no agent               6            20, in three attempts
breaks off again and again            0            15, in five attempts
====================================  ===========  ===============================

A question lasts as long as one attempt, but for 1 s where the agent is away. What a job
cannot do without is asked once before the job turns back, or until there is an answer.

Each constant has the seconds before one more time.
"""

CONNECTION = (0.3, 0.6)
"""Before a connection is tried anew."""
AGENT_AWAY = (*CONNECTION, 0.9, 1.0, 1.0, 1.0, 1.0)
"""The same for a step, where the machine is there and refuses: an agent that is
upgraded is back in some five seconds."""
ATTEMPT = (1.0, 2.0)
"""Before a job makes a whole attempt anew, whatever failed in it."""
BROKEN_OFF = (*ATTEMPT, 4.0, 8.0)
"""The same where the agent broke off: a busy machine starts it in 15 s."""
