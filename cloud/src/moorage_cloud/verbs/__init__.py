# SPDX-License-Identifier: BSD-2-Clause
"""What can be done with volumes: each verb is one transaction.

It is on record when it returns, and a worker carries it to the cluster. A refusal is
one sentence, and changes nothing.
"""

from .admin import forget_backend, import_volume
from .attach import attach, detach, force_detach
from .caller import Caller
from .changing import go_on, under_way
from .check import check_data, without_data
from .create import NewVolume, create
from .delete import delete
from .edit import (
    drop_metadata,
    reset_snapshot,
    reset_status,
    set_metadata,
    update,
    update_snapshot,
)
from .extend import extend
from .hindrances import Hindrance
from .hindrances import all_of as hindrances
from .images import NewImage, add_image, remove_image
from .messages import drop_message, messages
from .retype import retype
from .servers import (
    build,
    go_on_removing,
    helper_name,
    holding_server,
    remove,
    rename,
    server_is,
    server_is_gone,
    server_request,
    server_went_on,
    set_power,
)
from .snapshots import delete_snapshot, take_snapshot
from .story import story
from .transfers import accept, offer, offers, withdraw
from .types import (
    add_access,
    create_type,
    delete_type,
    drop_spec,
    make_default,
    remove_access,
    set_default,
    set_specs,
    unset_default,
    update_type,
)
