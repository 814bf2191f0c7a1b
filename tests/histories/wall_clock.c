/* SPDX-License-Identifier: BSD-2-Clause */
/* A wall clock that is wrong by the seconds that MOORAGE_WRONG_CLOCK, a file, holds. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *wrong_by; /* none while the program is loaded */

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("MOORAGE_WRONG_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = mmap(NULL, sizeof *wrong_by, PROT_READ, MAP_SHARED, file, 0);

    if (found == MAP_FAILED)
        abort(); /* nobody is to believe that it ran with a wrong clock */
    close(file);
    wrong_by = found;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, clock, now);

    if (!status && wrong_by)
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
            now->tv_sec += *wrong_by;
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec found;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (told)
        *told = now.tv_sec;
    return now.tv_sec;
}
