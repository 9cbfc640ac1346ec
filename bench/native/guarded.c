/* The work of `python -m bench guard`: calls of the driver, timed in the process that makes them.
 *
 * It is linked with the stub, and started with the guard preloaded or without. `guarded start` makes
 * a context and prints the nanoseconds that it took; `guarded crowd COUNT` has COUNT children, each
 * with a context, until its input ends; `guarded serve` makes a context, reads lines `WORK COUNT`
 * and prints for each the nanoseconds of the monotonic clock, then those of the processor.
 * `guarded spawn COUNT PRELOAD PROGRAM` starts a program COUNT times with this LD_PRELOAD and one time
 * without by turns, and prints the nanoseconds of each until it has ended, in two columns.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

#define BLOCK 4096
#define MOST_BLOCKS 1000000

CUresult cuInit(unsigned int);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuStreamSynchronize(CUstream);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);

static CUdeviceptr blocks[MOST_BLOCKS];
static int live;
static uint32_t chance = 1;

static int64_t clock_of(clockid_t which) {
    struct timespec at;
    clock_gettime(which, &at);
    return at.tv_sec * 1000000000ll + at.tv_nsec;
}

/* A figure of calls that failed would be none. */
static void need(CUresult code, const char *what) {
    if (code) {
        fprintf(stderr, "%s: code %d\n", what, code);
        exit(3);
    }
}

static void make_context(void) {
    CUcontext context;
    need(cuInit(0), "cuInit");
    need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

/* The first `count` of all live blocks are chosen at random. */
static void shuffle(int count) {
    for (int at = 0; at < count; at++) {
        chance = chance * 1664525u + 1013904223u;
        int other = at + (int)((uint64_t)chance * (uint32_t)(live - at) >> 32);
        CUdeviceptr kept = blocks[at];
        blocks[at] = blocks[other], blocks[other] = kept;
    }
}

static void allocate(int first, int end) {
    for (int at = first; at < end; at++) {
        need(cuMemAlloc_v2(&blocks[at], BLOCK), "cuMemAlloc_v2");
    }
}

static void pairs(int count) {
    CUdeviceptr made;
    for (int at = 0; at < count; at++) {
        need(cuMemAlloc_v2(&made, BLOCK), "cuMemAlloc_v2");
        need(cuMemFree_v2(made), "cuMemFree_v2");
    }
}

static void launches(int count) {
    for (int at = 0; at < count; at++) {
        need(cuLaunchKernel((CUfunction)blocks, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
             "cuLaunchKernel");
    }
}

static void questions(int count) {
    size_t some, all;
    for (int at = 0; at < count; at++) {
        need(cuMemGetInfo_v2(&some, &all), "cuMemGetInfo_v2");
    }
}

static void frees(int count) {
    for (int at = 0; at < count; at++) {
        need(cuMemFree_v2(blocks[at]), "cuMemFree_v2");
    }
}

static void answer(const char *what, int count) {
    int is_live = strcmp(what, "live") == 0, is_free = strcmp(what, "frees") == 0;
    if (is_live && count <= MOST_BLOCKS) {
        allocate(live, count);
        live = count > live ? count : live;
    } else if (is_free) {
        count = count < live ? count : live;
        shuffle(count);
    }
    int64_t begun = clock_of(CLOCK_MONOTONIC), used = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    if (strcmp(what, "pairs") == 0) {
        pairs(count);
    } else if (strcmp(what, "launches") == 0) {
        launches(count);
    } else if (strcmp(what, "questions") == 0) {
        questions(count);
    } else if (is_free) {
        frees(count);
    }
    used = clock_of(CLOCK_PROCESS_CPUTIME_ID) - used, begun = clock_of(CLOCK_MONOTONIC) - begun;
    if (is_free) {
        allocate(0, count);
    }
    need(cuStreamSynchronize(NULL), "cuStreamSynchronize");
    printf("%lld %lld\n", (long long)begun, (long long)used);
}

static void crowd(int count) {
    int began[2];
    char one = 0;
    if (pipe(began)) {
        exit(3);
    }
    for (int at = 0; at < count; at++) {
        if (fork() == 0) {
            make_context();
            if (write(began[1], &one, 1) != 1) {
                _exit(3);
            }
            while (read(0, &one, 1) > 0) {
            }
            _exit(0);
        }
    }
    for (int at = 0; at < count && read(began[0], &one, 1) == 1; at++) {
    }
    puts("crowd");
    while (wait(NULL) > 0) {
    }
}

static int64_t spawned(char **argv, char **environment) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    int64_t begun = clock_of(CLOCK_MONOTONIC);
    if (posix_spawn(&child, argv[0], &actions, NULL, argv, environment) ||
        waitpid(child, &status, 0) != child || status) {
        fprintf(stderr, "%s did not end well\n", argv[0]);
        exit(3);
    }
    begun = clock_of(CLOCK_MONOTONIC) - begun;
    posix_spawn_file_actions_destroy(&actions);
    return begun;
}

static void spawn(int count, const char *preload, char **argv) {
    char with[4096];
    char *environments[2][2] = {{with, NULL}, {NULL}};
    snprintf(with, sizeof with, "LD_PRELOAD=%s", preload);
    for (int at = 0; at < count; at++) {
        int64_t first = spawned(argv, environments[0]);
        printf("%lld %lld\n", (long long)first, (long long)spawned(argv, environments[1]));
    }
}

int main(int count, char **words) {
    char what[16];
    int many;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 2 && strcmp(words[1], "start") == 0) {
        int64_t begun = clock_of(CLOCK_MONOTONIC);
        make_context();
        printf("%lld\n", (long long)(clock_of(CLOCK_MONOTONIC) - begun));
    } else if (count == 3 && strcmp(words[1], "crowd") == 0) {
        crowd(atoi(words[2]));
    } else if (count > 4 && strcmp(words[1], "spawn") == 0) {
        spawn(atoi(words[2]), words[3], words + 4);
    } else if (count == 2 && strcmp(words[1], "serve") == 0) {
        make_context();
        while (scanf("%15s %d", what, &many) == 2) {
            answer(what, many);
        }
    } else {
        fprintf(stderr, "usage: guarded start|serve|crowd COUNT\n");
        return 2;
    }
    return 0;
}
