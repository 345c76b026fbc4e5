/* Preloaded into a server: system calls fail while files with these names exist in the folder $TEST_FAULTS.
 *
 *   sync   fsync and fdatasync fail with EIO, and nothing is synced
 *   clock  the clock is in the year 1960
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int is_on(const char *name) {
    const char *folder = getenv("TEST_FAULTS");
    char path[4096];
    if (!folder) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

#define NEXT(type, name) static type next; if (!next) next = (type)dlsym(RTLD_NEXT, name)

typedef int (*sync_call)(int);

int fsync(int file) {
    NEXT(sync_call, "fsync");
    if (is_on("sync")) { errno = EIO; return -1; }
    return next(file);
}

int fdatasync(int file) {
    NEXT(sync_call, "fdatasync");
    if (is_on("sync")) { errno = EIO; return -1; }
    return next(file);
}

typedef int (*clock_call)(clockid_t, struct timespec *);

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(clock_call, "clock_gettime");
    int result = next(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && is_on("clock")) now->tv_sec -= 66L * 365 * 86400;
    return result;
}
