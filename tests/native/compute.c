/* Launches of a tenant: `tenant WAY share HOW`, `tenant WAY ask`, `tenant WAY launches THREADS COUNT`,
 * and the rows of the audit.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tenant.h"

#define WIDTH 1
#define BATCH 8
#define CREDIT 100000000
#define NEARLY 30000000 /* of the longest batch is not measured yet when it ends */
#define BUSY_AT 18608  /* of GPU 0, in the truth */
#define PAID_AT 287808 /* of GPU 0, in the region */

static CUstream stream;

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000ll + at.tv_nsec;
}

static volatile int64_t *word(const char *variable, size_t size, size_t at) {
    int file = open(getenv(variable), O_RDWR);
    char *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || mapped == MAP_FAILED) {
        perror(variable);
        exit(3);
    }
    return (volatile int64_t *)(mapped + at);
}

static void begin(void) {
    CUresult (*create)(CUstream *, unsigned int) = dlsym(handle, "cuStreamCreate");
    create(&stream, 0);
}

static CUresult synchronize(CUstream of) {
    CUresult (*call)(CUstream) = dlsym(handle, "cuStreamSynchronize");
    return call(of);
}

typedef CUresult (*kernel_of)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void **, void **);

/* Launch a kernel of this width with an export. A graph has one kernel. */
static CUresult launch(const char *name, const void *function, unsigned int width) {
    CUfunction of = (CUfunction)function;
    if (strncmp(name, "cuGraphLaunch", 13) == 0) {
        return CALL(name, (const void *, CUstream))(function, stream);
    }
    if (strcmp(name, "cuLaunch") == 0) {
        return CALL(name, (CUfunction))(of);
    }
    if (strcmp(name, "cuLaunchGrid") == 0) {
        return CALL(name, (CUfunction, int, int))(of, (int)width, 1);
    }
    if (strcmp(name, "cuLaunchGridAsync") == 0) {
        return CALL(name, (CUfunction, int, int, CUstream))(of, (int)width, 1, stream);
    }
    if (strncmp(name, "cuLaunchKernelEx", 16) == 0) {
        CUlaunchConfig how = {.gridDimX = width, .hStream = stream};
        return CALL(name, (const CUlaunchConfig *, CUfunction, void **, void **))(&how, of, NULL,
                                                                                 NULL);
    }
    if (strstr(name, "MultiDevice")) {
        CUDA_LAUNCH_PARAMS list[1] = {{.function = of, .gridDimX = width, .hStream = stream}};
        return CALL(name, (CUDA_LAUNCH_PARAMS *, unsigned int, unsigned int))(list, 1, 0);
    }
    if (strstr(name, "Cooperative")) {
        return CALL(name, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, CUstream, void **))(of, width, 1, 1, 1, 1, 1, 0, stream, NULL);
    }
    return ((kernel_of)need(name))(of, width, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static CUresult captured(int count, CUgraph *graph) {
    CUresult (*begin_capture)(CUstream, int) = dlsym(handle, "cuStreamBeginCapture_v2");
    CUresult (*end_capture)(CUstream, CUgraph *) = dlsym(handle, "cuStreamEndCapture");
    begin_capture(stream, 0);
    for (int at = 0; at < count; at++) {
        launch("cuLaunchKernel", &stream, WIDTH);
    }
    return end_capture(stream, graph);
}

static const void *graph_of(int count) {
    CUgraph graph;
    CUgraphExec exec = NULL;
    captured(count, &graph);
    CALL("cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, unsigned long long))(&exec, graph,
                                                                                     0);
    return exec;
}

/* Launch until a container that always asks has been served for a second, or, with `milliseconds` 0,
 * until the input ends. Prints the share of GPU 0's time that all processes had, in thousandths.
 *
 * Where this machine was too busy to run the program, the container asked for nothing: time that is
 * lost beyond the credit of an idle container does not count. The count begins and ends at moments
 * at which nearly all is paid, in the same phase of a batch, so that credit is in neither.
 */
void share(const char *how, int milliseconds) {
    volatile int64_t *busy = word("FAIRLEAD_STUB_TRUTH", 65536, BUSY_AT);
    volatile int64_t *paid = word("FAIRLEAD_AUDIT_REGION", 290816, PAID_AT);
    struct pollfd input = {0, POLLIN, 0};
    int is_graph = strcmp(how, "graph") == 0, is_mixed = strcmp(how, "mixed") == 0;
    int has_guard = getenv("LD_PRELOAD") != NULL;
    int64_t begun = 0, first = 0, lost = 0;
    begin();
    kernel_of call = (kernel_of)need("cuLaunchKernel");
    CUresult (*call_graph)(const void *, CUstream) = (void *)need("cuGraphLaunch");
    const void *exec = is_graph ? graph_of(BATCH) : NULL;
    for (int at = 0; at < 4; at++) { /* the first launches of a function have no known time */
        call((CUfunction)&stream, WIDTH, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        synchronize(stream);
    }
    puts("begun");
    while (milliseconds || poll(&input, 1, 0) == 0) {
        for (unsigned int at = 0; at < (is_graph ? 1 : BATCH); at++) {
            unsigned int width = is_mixed ? 1 + at * at / 4 : WIDTH;
            if (is_graph) {
                call_graph(exec, stream);
            } else {
                call((CUfunction)&stream, width, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
            }
        }
        if (strcmp(how, "queue")) {
            synchronize(stream);
        }
        int64_t at = now(), owes = *paid, idle = at - CREDIT - owes;
        if (owes >= at - NEARLY || !has_guard) {
            if (!begun) {
                begun = at, first = *busy, lost = 0;
            } else if (milliseconds && at - begun - lost >= milliseconds * 1000000ll) {
                printf("share %lld\n", (long long)((*busy - first) * 1000 / (at - begun - lost)));
                return;
            }
        } else if (idle > 0) {
            lost += idle;
        }
    }
}

/* What the input asks: l a launch; c a capture of a hundred; g a graph of as many; r a hundred
 * launches that the driver refuses; m memory. Prints a line before and one after, with the
 * milliseconds that it took.
 */
void answer(void) {
    CUgraph graph;
    int asked;
    uint64_t made;
    begin();
    while ((asked = getchar()) != EOF) {
        CUresult code = 0;
        printf("begun %c\n", asked);
        int64_t begun = now();
        if (asked == 'l') {
            code = launch("cuLaunchKernel", &stream, WIDTH);
        } else if (asked == 's') {
            code = synchronize(stream);
        } else if (asked == 'c') {
            code = captured(100, &graph);
        } else if (asked == 'g') {
            code = CALL("cuGraphLaunch", (const void *, CUstream))(graph_of(100), stream);
        } else if (asked == 'r') {
            setenv("FAIRLEAD_STUB_REFUSE", "cuLaunchKernel", 1);
            for (int at = 0; at < 100; at++) {
                code = launch("cuLaunchKernel", &stream, WIDTH);
            }
            unsetenv("FAIRLEAD_STUB_REFUSE");
        } else if (asked == 'm') {
            code = linear("cuMemAlloc_v2", 16 << 20, &made);
        }
        printf("%c %d %lld\n", asked, code, (long long)(now() - begun) / 1000000);
    }
}

/* Whether launches of each export are charged to the region, and wait for what is owed there. */
void audit_launches(void) {
    static const char *const names[] = {
        "cuLaunch",
        "cuLaunchGrid",
        "cuLaunchGridAsync",
        "cuLaunchKernel",
        "cuLaunchKernel_ptsz",
        "cuLaunchKernelEx",
        "cuLaunchKernelEx_ptsz",
        "cuLaunchCooperativeKernel",
        "cuLaunchCooperativeKernel_ptsz",
        "cuLaunchCooperativeKernelMultiDevice",
        "cuGraphLaunch",
        "cuGraphLaunch_ptsz",
    };
    static const int count = sizeof names / sizeof names[0];
    volatile int64_t *paid = word("FAIRLEAD_AUDIT_REGION", 290816, PAID_AT);
    begin();
    for (int at = 0; at < count; at++) {
        int is_graph = strncmp(names[at], "cuGraph", 7) == 0;
        const void *function = is_graph ? graph_of(1) : (const void *)&names[at];
        *paid = 0;
        CUresult code = 0;
        for (int turn = 0; turn < 2; turn++) {
            code |= launch(names[at], function, WIDTH);
            synchronize(stream), synchronize(NULL);
        }
        int is_charged = *paid != 0;
        int64_t begun = now();
        *paid = begun + 20000000;
        code |= launch(names[at], function, WIDTH);
        printf("%s code %d charged %d waited %d\n", names[at], code, is_charged,
               now() - begun >= 20000000);
        synchronize(stream), synchronize(NULL);
        *paid = 0;
    }
}

/* A kernel in the current context, and a graph that is destroyed while events still measure it. */
static void launch_both(CUstream of, const void *function) {
    CUgraph graph;
    CUgraphExec exec;
    CUresult (*create)(CUgraph *, unsigned int) = dlsym(handle, "cuGraphCreate");
    kernel_of call = (kernel_of)need("cuLaunchKernel");
    call((CUfunction)function, WIDTH, 1, 1, 1, 1, 1, 0, of, NULL, NULL);
    if (create(&graph, 0) == 0 &&
        CALL("cuGraphInstantiateWithFlags",
             (CUgraphExec *, CUgraph, unsigned long long))(&exec, graph, 0) == 0) {
        CALL("cuGraphLaunch", (CUgraphExec, CUstream))(exec, of);
        CALL("cuGraphExecDestroy", (CUgraphExec))(exec);
    }
}

static void *launch_all(void *argument) {
    static const char functions[3];
    int count = *(int *)argument;
    CUcontext mine, own;
    CUstream of;
    uint64_t made;
    CUresult (*create)(CUstream *, unsigned int) = dlsym(handle, "cuStreamCreate");
    CUresult (*current)(CUcontext) = dlsym(handle, "cuCtxSetCurrent");
    CALL("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))(&mine, 0);
    current(mine);
    create(&of, 0);
    for (int at = 0; at < count; at++) {
        launch_both(of, &functions[at % 3]);
        if (at % 8 == 0 &&
            CALL("cuCtxCreate_v2", (CUcontext *, unsigned int, CUdevice))(&own, 0, 0) == 0) {
            launch_both(NULL, &functions[at % 3]);
            linear("cuMemAlloc_v2", 1 << 16, &made);
            CALL("cuCtxDestroy_v2", (CUcontext))(own);
        }
    }
    return NULL;
}

/* Threads launch, and each has a context of its own now and then, which goes with its events. */
void launch_in_threads(int many, int count) {
    pthread_t threads[64];
    for (int at = 0; at < many && at < 64; at++) {
        pthread_create(&threads[at], NULL, launch_all, &count);
    }
    for (int at = 0; at < many && at < 64; at++) {
        pthread_join(threads[at], NULL);
    }
    puts("done");
}
