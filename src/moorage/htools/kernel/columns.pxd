# SPDX-License-Identifier: BSD-2-Clause
cdef enum:
    W = 24
    MEM = 0
    FREE = 1
    KEPT = 2
    UNSAFE = 3
    DISK = 4
    DISKS = 5
    FLOOR = 6
    CPU = 7
    CPUS = 8
    SPEED = 9
    RATIO = 10
    SPINDLES = 11
    SPINDLE_LIMIT = 12
    LOAD = 13
    MAINS = 17
    COPIES = 18
    OFFLINE = 19
    FREE_ALL = 20
    DISK_ALL = 21
    CPU_ALL = 22
    SPINDLES_ALL = 23
    IW = 16
    I_MEM = 0
    I_DISK = 1
    I_CPU = 2
    I_SPINDLES = 3
    I_RUNS = 4
    I_KEEPS = 5
    I_LOCAL = 6
    I_P = 7
    I_S = 8
    I_LOAD = 9
    I_TAG = 13
    I_TAGS = 14
    I_VERBS = 15
    K = 13
    X_MEM = 0
    X_DISK = 1
    X_KEPT = 2
    X_CPU = 3
    X_LOAD = 4
    X_SPINDLES = 8
    X_MEM_ALL = 9
    X_DISK_ALL = 10
    X_CPU_ALL = 11
    X_SPINDLES_ALL = 12
    MEMO = 55
    ROOM = 4096
    F = 0
    FA = 1
    R = 2
    RF = 3
    FRF = 4
    FR = 5

cdef extern from *:
    """
    #define MOORAGE_NEAR 1e-7
    #define MOORAGE_HUGE 1e300
    """
    const double NEAR "MOORAGE_NEAR"
    const double HUGE "MOORAGE_HUGE"
