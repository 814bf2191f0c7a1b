# SPDX-License-Identifier: BSD-2-Clause
"""What a master may ask of a node: a frozen struct a verb, which says all of it.

The master builds them (``ops/asking/node_tasks``), journals keep them, the agent's
table is typed by them, and limits of time, fences and the reference derive from them.
"""

from typing import TYPE_CHECKING, Union

from .address import AddressThere, DropAddress, HoldAddress, LookForAddress
from .allocator import GetAllocators, RunAllocator
from .backup import (
    BeginExport,
    DropExport,
    DumpDisk,
    DumpGuest,
    EndDump,
    FetchExport,
    ListExports,
    LoadDisk,
    OfferExport,
    PublishExport,
    RemoveExport,
    RunExportScript,
    RunImportScript,
    SealExport,
    VerifyExport,
    WithdrawExport,
    Writing,
)
from .certify import ClearProvider, DigestProvider, OnProvider, TryProvider
from .copying import (
    AwaitMirror,
    CopyDisk,
    DropMirror,
    MirrorDisk,
    SettleMirror,
    SplitMirror,
    SwitchMirror,
)
from .disk import (
    AttachDisk,
    CloseDisk,
    CreateDisk,
    DetachDisk,
    ForgetDisk,
    GrowDisk,
    NoteDisk,
    OpenDisk,
    RemoveDisk,
    SizeDisk,
    SnapshotDisk,
    TuneDisk,
    UnmakeDisk,
    VerifyDisk,
)
from .guest import (
    AbortGuest,
    AdoptGuest,
    Arrived,
    AwaitGuest,
    DiscardGuest,
    Door,
    EndForeignGuest,
    FillGuest,
    FindConsole,
    InstallSystem,
    Moved,
    NetworkOf,
    PlugCard,
    PlugDisk,
    PrepareMigration,
    RebootGuest,
    RenameSystem,
    ResizeDisk,
    ResumeGuest,
    RunMigration,
    StartGuest,
    StopGuest,
    UnplugCard,
    UnplugDisk,
    VerifySystem,
    Whole,
    WithSystem,
)
from .hooks import HookRun, HookRuns, RunHooks
from .keys import (
    AbandonAuthority,
    AnnounceTrust,
    AuthorityFacts,
    GetAuthority,
    GetPins,
    HandKeyOver,
    KeyRequest,
    MakeMasterRequest,
    MakeRequest,
    MasterRequest,
    PrepareAuthority,
    RenewMaster,
    RequestKey,
    RequestMaster,
    RetireAuthority,
    SignKey,
    SwitchAuthority,
    TakeCertificate,
    TakeMasterKey,
    TellMasters,
    TrustAuthorities,
    TrustMasters,
)
from .line import Drawn, DrawTicket
from .maintenance import (
    GetLvm,
    PowerCycle,
    RepairGroup,
    RunScript,
    Said,
    SetAllocatable,
)
from .mirror import (
    AwaitSync,
    BeginMirror,
    GetMirrors,
    ReleaseCopy,
    RenewCopy,
    RestoreCopy,
)
from .node import (
    EnrolNode,
    ExpelNode,
    ForgetObjects,
    GetDevices,
    GetFacts,
    GetGuest,
    KillPrograms,
    LeaveCluster,
    ListForeignGuests,
    ListGuests,
    ListOldObjects,
    ListProcessors,
    ListProviders,
    ListSystems,
    MeasureDisks,
    Pause,
    Peer,
    ReachNodes,
    TryAccelerator,
    TryProcessor,
)
from .orders import PutFile, RunCommand
from .ssconf import LookAtSsconf, RestoreSsconf, WriteSsconf
from .state import (
    AddRecords,
    ApplyCommits,
    BeginCopy,
    CheckCopy,
    CopyStatus,
    DropCopy,
    GetCopies,
    GetStanding,
    GetStore,
    GetWatcher,
    HeedTerm,
    KeepKeys,
    Portion,
    ReadCopy,
    ReleaseLead,
    SealCopy,
    Standing,
    WantLead,
)
from .storage import ExamineStorage, Listed, ListVolumes
from .verb import (
    AtMaster,
    OnDisk,
    OnGuest,
    OnSlot,
    Report,
    Verb,
    WithDisks,
    answer_of,
    declared,
    disks_in,
    fitting,
    name_of,
    one_by_one,
    one_disk,
    silent,
    to_wire,
)

if TYPE_CHECKING:
    Call = Verb[object]
else:
    Call = Union[declared()]  # noqa: UP007 - a tuple
    """Any verb. A journal finds out by the name which one it is."""
