# SPDX-License-Identifier: BSD-2-Clause
"""Operations on node groups."""

from .add import GroupAdd
from .assign_nodes import GroupAssignNodes
from .cpu_models import GroupCpuModels
from .evacuate import GroupEvacuate
from .remove import GroupRemove
from .rename import GroupRename
from .set_params import GroupSetParams

OPERATIONS = (
    GroupAdd,
    GroupAssignNodes,
    GroupCpuModels,
    GroupEvacuate,
    GroupRemove,
    GroupRename,
    GroupSetParams,
)
