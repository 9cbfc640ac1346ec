/* The share of compute time: docs/spec/gpu-sharing.md#compute-share-of-the-guard.
 *
 * A launch is charged with the time that launches of its function took, before the driver gets it.
 * Events of the driver around some of the launches measure that time, and correct what was charged
 * since the measurement before. All processes of a container pay into one word of the region.
 */
#include "charge.h"
#include "sys.h"

/* A function, or all with the same hash. `since`, `charged`: launches since the last one that was
 * measured, and the time that they were charged. The launch that makes `since` reach `next` is
 * measured.
 */
struct work {
    int64_t mean, charged;
    uint32_t since, next;
};
#define WORKS 1024u
static struct work works[WORKS];

/* A pair of events. EMPTY: none yet; IDLE: may be used; TAKEN: one thread has it; SENT: the driver
 * has both. `work`: NULL where its graph is destroyed. `weight`: how many launches its time stands
 * for, which were charged `charged`.
 */
enum { EMPTY, IDLE, TAKEN, SENT };
struct probe {
    uint32_t state, weight;
    int gpu;
    int64_t charged;
    struct work *work;
    CUcontext context;
    CUevent start, end;
};
#define PROBES 64u
static struct probe probes[PROBES];
static uint32_t sent, asked_last;

/* GPU time that this thread has not paid for. */
static __thread int64_t owed[REGION_GPUS];
static __thread uint32_t chance;

static const int64_t MOST_OWED = 200000;      /* then the thread looks at the clock */
static const int64_t MOST_WAIT = 100000000;   /* at once */
static const int64_t MOST_TIME = 100000000000; /* of one launch */
static const int64_t EACH = 200000; /* GPU time between two measurements of a function */
enum { MOST_LAUNCHES = 64 /* between them */, MOST_WEIGHT = 1 << 20 };
enum { MOST_ASKED = 4, MOST_FAILURES = 16 };
enum { UNTIL_AGAIN = 8 /* launches, where all events are in use */ };

/* Failures of the event functions since the last time that was measured. */
static uint32_t failures;

static void fail(const char *name) {
    if (__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) == MOST_FAILURES) {
        guard_log("compute time is not limited, because the driver refuses ", name);
    }
}

void throttle_forget(void) {
    for (uint32_t at = 0; at < PROBES; at++) {
        probes[at].state = EMPTY;
    }
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        owed[gpu] = 0;
    }
    sent = 0;
}

static void set(struct probe *probe, uint32_t state) {
    __atomic_store_n(&probe->state, state, __ATOMIC_RELEASE);
}

static int take(struct probe *probe, uint32_t state) {
    return __atomic_load_n(&probe->state, __ATOMIC_RELAXED) == state &&
           __atomic_compare_exchange_n(&probe->state, &state, TAKEN, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

void throttle_leave(CUcontext context) {
    for (uint32_t at = 0; context && at < PROBES; at++) {
        struct probe *probe = &probes[at];
        /* Another thread asks about it for a moment; a launch into this context is no more. */
        for (int turn = 0;
             turn < 1000 && __atomic_load_n(&probe->context, __ATOMIC_ACQUIRE) == context; turn++) {
            int was_sent = take(probe, SENT);
            if (was_sent || take(probe, IDLE)) {
                __atomic_fetch_sub(&sent, (uint32_t)was_sent, __ATOMIC_RELAXED);
                __atomic_store_n(&probe->context, NULL, __ATOMIC_RELEASE);
                set(probe, EMPTY);
            } else {
                sys_yield();
            }
        }
    }
}

static int64_t of_share(int gpu, int64_t time) {
    return time * 100 / (int64_t)guard_limits.gpus[gpu].core_percent;
}

/* Until the container has paid for everything before this launch. */
static void wait_until(int gpu, int64_t moment, int64_t now) {
    for (;; now = sys_nanoseconds()) {
        int64_t all = region_spend(&guard_account, (uint32_t)gpu, 0, now);
        moment = all < moment ? all : moment;
        if (moment <= now) {
            return;
        }
        sys_sleep(moment - now < MOST_WAIT ? moment - now : MOST_WAIT);
    }
}

/* What a measured launch took. */
static void learn(const struct probe *probe, int64_t time, int64_t now) {
    int64_t more = time * probe->weight - probe->charged;
    struct work *work = probe->work;
    region_spend(&guard_account, (uint32_t)probe->gpu, of_share(probe->gpu, more), now);
    if (!work) {
        return;
    }
    int64_t mean = __atomic_load_n(&work->mean, __ATOMIC_RELAXED);
    mean = mean ? mean + (time - mean) / 4 : time;
    int64_t every = mean * MOST_LAUNCHES > EACH ? EACH / (mean ? mean : 1) + 1 : MOST_LAUNCHES;
    chance = chance * 1664525u + 1013904223u;
    __atomic_store_n(&work->mean, mean, __ATOMIC_RELAXED);
    /* Not each time the same launch of a program's loop. */
    uint32_t next = (uint32_t)(every / 2 + (chance >> 16) % every + 1);
    __atomic_store_n(&work->next, next, __ATOMIC_RELAXED);
}

/* Ask about a few launches that were measured. */
static void ask(int64_t now) {
    CUresult (*query)(CUevent) = CALL(cuEventQuery, (CUevent));
    CUresult (*elapsed)(float *, CUevent, CUevent) =
        CALL(cuEventElapsedTime, (float *, CUevent, CUevent));
    uint32_t left = __atomic_load_n(&sent, __ATOMIC_RELAXED);
    left = left < MOST_ASKED ? left : MOST_ASKED;
    for (uint32_t at = 0; at < PROBES && left; at++) {
        struct probe *probe =
            &probes[__atomic_fetch_add(&asked_last, 1, __ATOMIC_RELAXED) % PROBES];
        float milliseconds = 0;
        if (!take(probe, SENT)) {
            continue;
        }
        left--;
        CUresult code = query && elapsed ? query(probe->end) : CUDA_SUCCESS;
        if (code == CUDA_ERROR_NOT_READY) {
            left -= left != 0; /* most likely the others are not, either */
            set(probe, SENT);
            continue;
        }
        if (code == CUDA_SUCCESS && query && elapsed &&
            elapsed(&milliseconds, probe->start, probe->end) == CUDA_SUCCESS) {
            double time = milliseconds > 0 ? (double)milliseconds * 1e6 : 0;
            learn(probe, time < (double)MOST_TIME ? (int64_t)time : MOST_TIME, now);
            __atomic_store_n(&failures, 0, __ATOMIC_RELAXED);
        } else {
            fail("cuEventElapsedTime");
        }
        __atomic_fetch_sub(&sent, 1, __ATOMIC_RELAXED);
        set(probe, IDLE);
    }
}

/* Events belong to the context of the stream that they are recorded in. */
static CUcontext context_of(CUstream stream) {
    CUcontext context = NULL;
    CUresult (*current)(CUcontext *) = CALL(cuCtxGetCurrent, (CUcontext *));
    CUresult (*of)(CUstream, CUcontext *) = CALL(cuStreamGetCtx, (CUstream, CUcontext *));
    if (!of || of(stream, &context) != CUDA_SUCCESS) {
        context = NULL;
    }
    if (!context && current) {
        current(&context);
    }
    return context;
}

static CUresult create(struct probe *probe, CUcontext context) {
    CUresult (*make)(CUevent *, unsigned int) = CALL(cuEventCreate, (CUevent *, unsigned int));
    CUresult (*unmake)(CUevent) = CALL(cuEventDestroy_v2, (CUevent));
    CUresult (*push)(CUcontext) = CALL(cuCtxPushCurrent_v2, (CUcontext));
    CUresult (*pop)(CUcontext *) = CALL(cuCtxPopCurrent_v2, (CUcontext *));
    CUcontext none;
    if (!make || !unmake || !push || !pop || push(context) != CUDA_SUCCESS) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUresult code = make(&probe->start, 0);
    if (code == CUDA_SUCCESS && (code = make(&probe->end, 0)) != CUDA_SUCCESS) {
        unmake(probe->start);
    }
    pop(&none);
    return code;
}

/* A pair of events of this context: one that is there, a new one, or one in place of another
 * context's. NULL where all are in use, or the driver makes none.
 */
static struct probe *probe_of(CUcontext context) {
    CUresult (*unmake)(CUevent) = CALL(cuEventDestroy_v2, (CUevent));
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t at = 0; at < PROBES; at++) {
            struct probe *probe = &probes[at];
            if (!take(probe, turn == 1 ? EMPTY : IDLE)) {
                continue;
            }
            if (turn == 0 && probe->context != context) {
                set(probe, IDLE);
                continue;
            }
            if (turn == 2 && unmake) {
                unmake(probe->start), unmake(probe->end);
            }
            __atomic_store_n(&probe->context, context, __ATOMIC_RELEASE);
            if (turn == 0 || create(probe, context) == CUDA_SUCCESS) {
                return probe;
            }
            fail("cuEventCreate");
            set(probe, EMPTY);
            return NULL;
        }
    }
    return NULL;
}

static CUresult record(CUevent event, CUstream stream) {
    CUresult (*call)(CUevent, CUstream) = CALL(cuEventRecord, (CUevent, CUstream));
    CUresult code = call ? call(event, stream) : CUDA_ERROR_NOT_SUPPORTED;
    if (code != CUDA_SUCCESS) {
        fail("cuEventRecord");
    }
    return code;
}

static void measure(struct launch *launch) {
    CUcontext context = context_of(launch->stream);
    struct probe *probe = context ? probe_of(context) : NULL;
    if (!probe && __atomic_load_n(&sent, __ATOMIC_RELAXED) >= PROBES) {
        uint32_t since = __atomic_load_n(&launch->work->since, __ATOMIC_RELAXED);
        __atomic_store_n(&launch->work->next, since + UNTIL_AGAIN, __ATOMIC_RELAXED);
    }
    if (!probe) {
        return;
    }
    if (record(probe->start, launch->stream) != CUDA_SUCCESS) {
        set(probe, EMPTY);
        return;
    }
    probe->gpu = launch->gpu;
    __atomic_store_n(&probe->work, launch->work, __ATOMIC_RELAXED);
    probe->charged = __atomic_exchange_n(&launch->work->charged, 0, __ATOMIC_RELAXED);
    /* A refused launch that was counted before an exchange here is taken off after it. */
    int32_t since = (int32_t)__atomic_exchange_n(&launch->work->since, 0, __ATOMIC_RELAXED);
    probe->weight = since < 1 ? 1 : since < MOST_WEIGHT ? (uint32_t)since : MOST_WEIGHT;
    launch->probe = probe;
}

/* The launch is not charged after all. */
static void uncharge(struct launch *launch) {
    owed[launch->gpu] -= launch->charged;
    __atomic_fetch_sub(&launch->work->charged, launch->charged, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&launch->work->since, 1, __ATOMIC_RELAXED);
}

static int is_capturing(CUstream stream) {
    int status = 0;
    CUresult (*call)(CUstream, int *) = CALL(cuStreamIsCapturing, (CUstream, int *));
    return call && (call(stream, &status) != CUDA_SUCCESS || status);
}

/* A throttle point: pay, wait, and measure where the launch is due. */
static void __attribute__((noinline)) look(struct launch *launch) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult (*exchange)(int *) = CALL(cuThreadExchangeStreamCaptureMode, (int *));
    int gpu = launch->gpu;
    if (__atomic_load_n(&failures, __ATOMIC_RELAXED) >= MOST_FAILURES ||
        is_capturing(launch->stream)) {
        uncharge(launch);
        launch->gpu = -1;
        return;
    }
    /* Else a question about an event would end the capture of another thread. */
    int is_relaxed = exchange && exchange(&mode) == CUDA_SUCCESS;
    int64_t now = sys_nanoseconds();
    ask(now);
    int64_t cost = of_share(gpu, owed[gpu]);
    int64_t until = region_spend(&guard_account, (uint32_t)gpu, cost, now);
    owed[gpu] = 0;
    wait_until(gpu, until - of_share(gpu, launch->charged), now);
    if (__atomic_load_n(&launch->work->since, __ATOMIC_RELAXED) >=
        __atomic_load_n(&launch->work->next, __ATOMIC_RELAXED)) {
        measure(launch);
    }
    if (is_relaxed) {
        exchange(&mode);
    }
}

static struct work *work_of(const void *function) {
    return &works[((uint64_t)function * 0x9e3779b97f4a7c15u) >> 54];
}

/* What its last launches took is charged, and is not the mean of the next graph there. */
void throttle_destroyed(const void *function) {
    struct work *work = work_of(function);
    for (uint32_t at = 0; at < PROBES && __atomic_load_n(&sent, __ATOMIC_RELAXED); at++) {
        struct probe *probe = &probes[at];
        if (__atomic_load_n(&probe->work, __ATOMIC_RELAXED) == work && take(probe, SENT)) {
            if (probe->work == work) { /* it may be of another launch since */
                __atomic_store_n(&probe->work, NULL, __ATOMIC_RELAXED);
            }
            set(probe, SENT);
        }
    }
    __atomic_store_n(&work->mean, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&work->next, 0, __ATOMIC_RELAXED);
}

static void charge_time(struct launch *launch, const void *function) {
    struct work *work = work_of(function);
    launch->work = work;
    launch->probe = NULL;
    launch->charged = __atomic_load_n(&work->mean, __ATOMIC_RELAXED);
    owed[launch->gpu] += launch->charged;
    __atomic_fetch_add(&work->charged, launch->charged, __ATOMIC_RELAXED);
    uint32_t since = __atomic_add_fetch(&work->since, 1, __ATOMIC_RELAXED);
    if (since >= __atomic_load_n(&work->next, __ATOMIC_RELAXED) || owed[launch->gpu] >= MOST_OWED) {
        look(launch);
    }
}

static int shared_gpu(int gpu) { return gpu >= 0 && guard_shares >> gpu & 1 ? gpu : -1; }

/* With one GPU in the limits file no other one has a context. */
static int gpu_here(void) {
    CUdevice device;
    if (guard_limits.count == 1) {
        return shared_gpu(0);
    }
    CUresult (*call)(CUdevice *) = CALL(cuCtxGetDevice, (CUdevice *));
    return call && call(&device) == CUDA_SUCCESS ? shared_gpu(gpu_of(device)) : -1;
}

static void finish(struct launch *launch, CUresult code) {
    struct probe *probe = launch->probe;
    if (!probe) {
        uncharge(launch);
        return;
    }
    if (code == CUDA_SUCCESS && record(probe->end, launch->stream) == CUDA_SUCCESS) {
        __atomic_fetch_add(&sent, 1, __ATOMIC_RELAXED);
        set(probe, SENT);
        return;
    }
    __atomic_fetch_add(&launch->work->since, probe->weight, __ATOMIC_RELAXED);
    __atomic_fetch_add(&launch->work->charged, probe->charged, __ATOMIC_RELAXED);
    set(probe, IDLE);
    if (code != CUDA_SUCCESS) {
        uncharge(launch);
    }
}

void launch_begin(struct launch *launch, const void *function, CUstream stream, int is_per_thread) {
    launch->gpu = guard_shares ? gpu_here() : -1;
    if (launch->gpu >= 0) {
        launch->stream = is_per_thread && !stream ? CU_STREAM_PER_THREAD : stream;
        charge_time(launch, function);
    }
}

void launch_end(struct launch *launch, CUresult code) {
    if (launch->gpu >= 0 && (launch->probe || code != CUDA_SUCCESS)) {
        finish(launch, code);
    }
}

#define IS_PER_THREAD(name) ((void *)real == hook_real[HOOK_##name##_ptsz])
#define LAUNCHED(function, stream, is_per_thread, call)                                            \
    if (!guard_shares) {                                                                           \
        return (call);                                                                             \
    }                                                                                              \
    struct launch launch;                                                                          \
    launch_begin(&launch, function, stream, is_per_thread);                                        \
    CUresult code = (call);                                                                        \
    launch_end(&launch, code);                                                                     \
    return code

CUresult on_launch(CUresult (*real)(CUfunction), CUfunction function) {
    LAUNCHED(function, NULL, 0, real(function));
}

CUresult on_launch_grid(CUresult (*real)(CUfunction, int, int), CUfunction function, int width,
                        int height) {
    LAUNCHED(function, NULL, 0, real(function, width, height));
}

CUresult on_launch_grid_async(CUresult (*real)(CUfunction, int, int, CUstream),
                              CUfunction function, int width, int height, CUstream stream) {
    LAUNCHED(function, stream, 0, real(function, width, height, stream));
}

CUresult on_launch_kernel(CUresult (*real)(CUfunction, unsigned int, unsigned int, unsigned int,
                                           unsigned int, unsigned int, unsigned int, unsigned int,
                                           CUstream, void **, void **),
                          CUfunction function, unsigned int grid_x, unsigned int grid_y,
                          unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                          unsigned int block_z, unsigned int shared, CUstream stream,
                          void **arguments, void **more) {
    LAUNCHED(function, stream, IS_PER_THREAD(cuLaunchKernel),
             real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                  arguments, more));
}

CUresult on_launch_kernel_ex(CUresult (*real)(const CUlaunchConfig *, CUfunction, void **, void **),
                             const CUlaunchConfig *how, CUfunction function, void **arguments,
                             void **more) {
    LAUNCHED(function, how ? how->hStream : NULL, IS_PER_THREAD(cuLaunchKernelEx),
             real(how, function, arguments, more));
}

CUresult on_launch_cooperative(CUresult (*real)(CUfunction, unsigned int, unsigned int,
                                                unsigned int, unsigned int, unsigned int,
                                                unsigned int, unsigned int, CUstream, void **),
                               CUfunction function, unsigned int grid_x, unsigned int grid_y,
                               unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                               unsigned int block_z, unsigned int shared, CUstream stream,
                               void **arguments) {
    LAUNCHED(function, stream, IS_PER_THREAD(cuLaunchCooperativeKernel),
             real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                  arguments));
}

/* The GPU of a stream that may not be of the current context. */
static int gpu_of_stream(CUstream stream) {
    CUresult (*push)(CUcontext) = CALL(cuCtxPushCurrent_v2, (CUcontext));
    CUresult (*pop)(CUcontext *) = CALL(cuCtxPopCurrent_v2, (CUcontext *));
    CUcontext context = context_of(stream);
    if (!context || !push || !pop || push(context) != CUDA_SUCCESS) {
        return -1;
    }
    int gpu = gpu_here();
    pop(&context);
    return gpu;
}

/* One kernel on several GPUs, each with a stream of its own. */
CUresult on_launch_devices(CUresult (*real)(CUDA_LAUNCH_PARAMS *, unsigned int, unsigned int),
                           CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags) {
    struct launch launches[REGION_GPUS];
    if (!guard_shares || !list || count > REGION_GPUS) {
        return real(list, count, flags);
    }
    for (unsigned int at = 0; at < count; at++) {
        launches[at].stream = list[at].hStream;
        launches[at].gpu = gpu_of_stream(list[at].hStream);
        if (launches[at].gpu >= 0) {
            charge_time(&launches[at], list[at].function);
        }
    }
    CUresult code = real(list, count, flags);
    for (unsigned int at = 0; at < count; at++) {
        launch_end(&launches[at], code);
    }
    return code;
}
