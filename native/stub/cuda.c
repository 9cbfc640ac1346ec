/* A stub of NVIDIA's driver library: it allocates nothing, and keeps an exact account of what it
 * gave (truth.h).
 *
 * Functions that allocate are written here as `stub_LOGIC`; tools/build_native.py writes an export
 * for every form of them, and one that does nothing for every other name of the look-up lists.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stub.h"
#include "truth.h"

#define SHOWN __attribute__((visibility("default")))
#define MIB (1ull << 20)
#define POOL_STEP knob("FAIRLEAD_STUB_POOL_STEP", 32 * MIB)
#define PITCH knob("FAIRLEAD_STUB_PITCH", 512)
#define BUCKETS (1u << 16)

enum kind { POINTER, ARRAY, HANDLE, MAPPING, EXTERNAL, VALUE, CONTEXT, EXEC };

struct context {
    int device;
    int is_primary;
    int references;
};

/* `end`: the moment of the monotonic clock at which its work is done. */
struct stream {
    struct context *context;
    struct graph *captured;
    int is_spoiled; /* its capture */
    int64_t end;
};

struct event {
    int64_t at; /* 0: not recorded */
};

struct pool {
    int gpu, is_destroyed;
    uint64_t reserved, used, threshold;
};

struct graph_node {
    int type;
    int gpu;
    uint64_t size;
    int64_t time;
    struct graph *child;
    struct graph_node *next;
};

struct graph {
    struct graph_node *nodes;
};

struct graph_exec {
    uint64_t sums[TRUTH_GPUS];
    int64_t time;
    int is_live;
};

struct block {
    uint64_t key, size;
    enum kind kind;
    int gpu, references, times; /* `times`: opened beside the first */
    struct context *context;
    struct pool *pool;
    struct block *handle, *next;
};

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;
static struct block *buckets[BUCKETS];
static uint64_t next_address = 0x700000000000, next_small = 0x100000;
static struct context primaries[TRUTH_GPUS];
static struct pool default_pools[TRUTH_GPUS], *current_pools[TRUTH_GPUS];
static uint64_t graph_kept[TRUTH_GPUS], graph_free[TRUTH_GPUS];
static __thread struct context *stack[16];
static __thread int depth;
static int allocations;

static struct context *now(void) { return depth ? stack[depth - 1] : NULL; }

static struct block **bucket(uint64_t key) {
    return &buckets[(key * 0x9e3779b97f4a7c15u >> 40) % BUCKETS];
}

static struct block *find(uint64_t key, enum kind kind) {
    for (struct block *at = *bucket(key); at; at = at->next) {
        if (at->key == key && at->kind == kind) {
            return at;
        }
    }
    return NULL;
}

static struct block *add(uint64_t key, enum kind kind, uint64_t size, int gpu) {
    struct block *made = calloc(1, sizeof *made);
    *made = (struct block){key, size, kind, gpu, 1, 0, now(), NULL, NULL, *bucket(key)};
    *bucket(key) = made;
    return made;
}

static void forget(struct block *block) {
    struct block **at = bucket(block->key);
    while (*at != block) {
        at = &(*at)->next;
    }
    *at = block->next;
    free(block);
}

/* Objects of the driver that are no memory: which are there, so that one is not freed twice. */
static void register_object(void *object, enum kind kind) {
    pthread_mutex_lock(&state);
    add((uint64_t)object, kind, 0, 0);
    pthread_mutex_unlock(&state);
}

/* Whether it was there. The caller has the lock. */
static int unregister(void *object, enum kind kind) {
    struct block *block = find((uint64_t)object, kind);
    if (block) {
        forget(block);
    }
    return block != NULL;
}

static uint64_t address(uint64_t size) {
    uint64_t at = next_address;
    next_address += (size + 4095) / 4096 * 4096 + 4096;
    return at;
}

/* Whether a test ordered that this export, or exports of this kind, are refused. */
int stub_refuses(const char *export_name, const char *kind) {
    const char *ordered = getenv("FAIRLEAD_STUB_REFUSE");
    return ordered && (strcmp(ordered, export_name) == 0 || strcmp(ordered, kind) == 0);
}

/* What every allocation does first: the delay, and the failure that a test ordered. */
static int ordered(void) {
    knob_delay();
    static int64_t fails = -1;
    if (fails < 0) {
        fails = (int64_t)knob("FAIRLEAD_STUB_FAIL_EVERY", 0);
    }
    int count = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return fails && count % fails == 0 ? (int)knob("FAIRLEAD_STUB_FAIL_CODE", 999) : 0;
}

static CUresult make(enum kind kind, uint64_t key, uint64_t size, int gpu) {
    CUresult code = ordered();
    if (code) {
        return code;
    }
    if (truth_add(gpu, size)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    knob_delay();
    pthread_mutex_lock(&state);
    add(key, kind, size, gpu);
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}

static uint64_t take_address(uint64_t size, int is_small) {
    pthread_mutex_lock(&state);
    uint64_t at = is_small ? next_small : address(size);
    next_small += is_small ? 4096 : 0;
    pthread_mutex_unlock(&state);
    return at;
}

static CUresult unmake(enum kind kind, uint64_t key) {
    pthread_mutex_lock(&state);
    struct block *block = find(key, kind);
    if (!block) {
        pthread_mutex_unlock(&state);
        return CUDA_ERROR_INVALID_VALUE;
    }
    int gpu = block->gpu;
    uint64_t size = block->size;
    struct pool *pool = block->pool;
    int is_import = !block->references;
    forget(block);
    if (pool) {
        pool->used -= size;
        if (pool->is_destroyed && pool->used == 0) {
            truth_sub(gpu, pool->reserved);
            pool->reserved = 0;
        }
    }
    pthread_mutex_unlock(&state);
    knob_delay();
    if (!pool && !is_import) {
        truth_sub(gpu, size);
    }
    return CUDA_SUCCESS;
}

/* Devices, contexts, streams. */
SHOWN CUresult cuInit(unsigned int flags) { return (void)flags, CUDA_SUCCESS; }
SHOWN CUresult cuDriverGetVersion(int *version) { return *version = 13050, CUDA_SUCCESS; }
SHOWN CUresult cuDeviceGetCount(int *count) { return *count = knob_gpus(), CUDA_SUCCESS; }

SHOWN CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    return ordinal < 0 || ordinal >= knob_gpus() ? CUDA_ERROR_INVALID_DEVICE
                                                 : (*device = ordinal, CUDA_SUCCESS);
}

SHOWN CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    return device < 0 || device >= knob_gpus() ? CUDA_ERROR_INVALID_DEVICE
                                               : (stub_uuid(device, uuid->bytes), CUDA_SUCCESS);
}

SHOWN CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    return cuDeviceGetUuid(uuid, device);
}

SHOWN CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    (void)device;
    return *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 2 : 64, CUDA_SUCCESS;
}

CUresult stub_total(size_t *bytes, CUdevice device) {
    return (void)device, *bytes = knob_memory(), CUDA_SUCCESS;
}
CUresult stub_total_v1(unsigned int *bytes, CUdevice device) {
    return (void)device, *bytes = (unsigned int)knob_memory(), CUDA_SUCCESS;
}

SHOWN CUresult cuCtxGetCurrent(CUcontext *context) {
    return stub_refuses("cuCtxGetCurrent", "") ? 999 : (*context = now(), CUDA_SUCCESS);
}

SHOWN CUresult cuCtxGetDevice(CUdevice *device) {
    return now() ? (*device = now()->device, CUDA_SUCCESS) : CUDA_ERROR_INVALID_CONTEXT;
}

SHOWN CUresult cuCtxSetCurrent(CUcontext context) {
    depth = depth ? depth : 1;
    stack[depth - 1] = context;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuCtxPushCurrent_v2(CUcontext context) {
    return depth == 16 ? CUDA_ERROR_INVALID_VALUE : (stack[depth++] = context, CUDA_SUCCESS);
}

SHOWN CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    if (!depth) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

static uint64_t context_bytes(void) { return knob("FAIRLEAD_STUB_CONTEXT", 0); }

static CUresult new_context(CUcontext *context, CUdevice device) {
    CUresult code = ordered();
    if (code || truth_add(device, context_bytes())) {
        return code ? code : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = calloc(1, 64);
    (*context)->device = device;
    register_object(*context, CONTEXT);
    return cuCtxPushCurrent_v2(*context);
}

CUresult stub_context(CUcontext *context, unsigned int flags, CUdevice device) {
    return (void)flags, new_context(context, device);
}
CUresult stub_context_v3(CUcontext *context, void *affinity, int count, unsigned int flags,
                         CUdevice device) {
    return (void)affinity, (void)count, (void)flags, new_context(context, device);
}
CUresult stub_context_v4(CUcontext *context, void *parameters, unsigned int flags,
                         CUdevice device) {
    return (void)parameters, (void)flags, new_context(context, device);
}
CUresult stub_green_context(CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
                            unsigned int flags) {
    CUcontext made = NULL;
    CUresult code = ((void)resources, (void)flags, new_context(&made, device));
    depth -= code == CUDA_SUCCESS;
    *context = (CUgreenCtx)made;
    return code;
}

/* Everything of a context goes with it, but not handles, mappings, or blocks of a pool. */
static void clear(struct context *context) {
    for (uint32_t index = 0; index < BUCKETS; index++) {
        for (struct block *at = buckets[index], *next; at; at = next) {
            next = at->next;
            if (at->context == context && !at->pool &&
                (at->kind == POINTER || at->kind == ARRAY || at->kind == VALUE)) {
                truth_sub(at->gpu, at->size);
                forget(at);
            }
        }
    }
    truth_sub(context->device, context_bytes());
}

CUresult stub_context_destroy(CUcontext context) {
    pthread_mutex_lock(&state);
    int is_there = unregister(context, CONTEXT);
    if (is_there) {
        clear(context);
    }
    pthread_mutex_unlock(&state);
    if (!is_there) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    depth -= now() == context;
    free(context);
    return CUDA_SUCCESS;
}
CUresult stub_green_destroy(CUgreenCtx context) {
    return stub_context_destroy((CUcontext)context);
}

CUresult stub_primary_retain(CUcontext *context, CUdevice device) {
    if (device < 0 || device >= knob_gpus()) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    struct context *primary = &primaries[device];
    if (!primary->references && truth_add(device, context_bytes())) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *primary = (struct context){device, 1, primary->references + 1};
    *context = primary;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    return *flags = 0, *active = primaries[device].references > 0, CUDA_SUCCESS;
}

CUresult stub_primary_reset(CUdevice device) {
    pthread_mutex_lock(&state);
    if (primaries[device].references) {
        clear(&primaries[device]);
    }
    primaries[device].references = 0;
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}

CUresult stub_primary_release(CUdevice device) {
    if (!primaries[device].references) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (primaries[device].references == 1) {
        return stub_primary_reset(device);
    }
    primaries[device].references--;
    return CUDA_SUCCESS;
}

CUresult stub_context_limit(int limit, size_t value) {
    struct context *context = now();
    uint64_t size = limit == CU_LIMIT_STACK_SIZE ? value * 2 * 64 : value;
    uint64_t key = (uint64_t)context * 4 + (uint64_t)limit;
    if (!context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct block *old = find(key, VALUE);
    if (old) {
        unmake(VALUE, key);
    }
    return make(VALUE, key, size, context->device);
}

SHOWN CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    (*stream)->context = now();
    return CUDA_SUCCESS;
}

static struct stream *of(CUstream stream) { return (uintptr_t)stream > 2 ? stream : NULL; }

/* Time: a kernel keeps its stream busy, and no processor. */
static struct stream legacy[TRUTH_GPUS];
static __thread struct stream own[TRUTH_GPUS];
static __thread int capture_mode;
static int captures;
static struct stream *captured_streams[8];

static struct stream *busy_stream(CUstream stream) {
    int device = now() ? now()->device : 0;
    return of(stream) ? stream : (uintptr_t)stream == 2 ? &own[device] : &legacy[device];
}

static int64_t clock_now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000ll + at.tv_nsec;
}

static void sleep_until(int64_t moment) {
    struct timespec at = {moment / 1000000000, moment % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL)) {
    }
}

/* How long a kernel with a grid of this width takes. */
static int64_t kernel_time(unsigned int width) {
    static int64_t each = -1;
    if (each < 0) {
        each = (int64_t)knob("FAIRLEAD_STUB_KERNEL_NS", 0);
    }
    return each * width;
}

static CUresult add_node(CUgraph graph, int type, int gpu, uint64_t size, CUgraphNode *node);

/* A launch waits where 1024 like it are before it, as a driver's queue has an end. */
static CUresult work(CUstream on, int64_t time) {
    struct stream *stream = busy_stream(on);
    if (stream->captured) {
        add_node(stream->captured, 0, 0, 0, NULL);
        stream->captured->nodes->time = time;
        return CUDA_SUCCESS;
    }
    if (!time) {
        return CUDA_SUCCESS;
    }
    int64_t at = clock_now();
    pthread_mutex_lock(&state);
    stream->end = (stream->end > at ? stream->end : at) + time;
    int64_t free_at = stream->end - 1024 * time;
    pthread_mutex_unlock(&state);
    truth_work(stream->context ? stream->context->device : now() ? now()->device : 0,
               (uint64_t)time);
    if (free_at > at) {
        sleep_until(free_at);
    }
    return CUDA_SUCCESS;
}

/* Functions of modules. The kernel `spin` takes the nanoseconds of its first argument. */
static struct function {
    int is_spin;
} plain_function, spin_function = {1};

SHOWN CUresult cuModuleLoadData(void **module, const void *image) {
    return *module = &plain_function, image ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
SHOWN CUresult cuModuleGetFunction(CUfunction *function, void *module, const char *name) {
    (void)module;
    return *function = strcmp(name, "spin") ? &plain_function : &spin_function, CUDA_SUCCESS;
}
static int64_t time_of(CUfunction function, unsigned int width, void **arguments) {
    int is_spin = function == &spin_function && arguments;
    return is_spin ? (int64_t) * (uint64_t *)arguments[0] : kernel_time(width);
}

CUresult stub_launch(CUfunction function) { return (void)function, work(NULL, kernel_time(1)); }
CUresult stub_launch_grid(CUfunction function, int width, int height) {
    return (void)function, (void)height, work(NULL, kernel_time((unsigned int)width));
}
CUresult stub_launch_grid_async(CUfunction function, int width, int height, CUstream stream) {
    return (void)function, (void)height, work(stream, kernel_time((unsigned int)width));
}
CUresult stub_launch_kernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared, CUstream stream,
                            void **arguments, void **more) {
    (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    return (void)shared, (void)more, work(stream, time_of(function, grid_x, arguments));
}
CUresult stub_launch_kernel_ex(const CUlaunchConfig *how, CUfunction function, void **arguments,
                               void **more) {
    (void)function, (void)arguments, (void)more;
    return how ? work(how->hStream, kernel_time(how->gridDimX)) : CUDA_ERROR_INVALID_VALUE;
}
CUresult stub_launch_cooperative(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int shared, CUstream stream,
                                 void **arguments) {
    return stub_launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                              stream, arguments, NULL);
}
CUresult stub_launch_devices(CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags) {
    for (unsigned int at = ((void)flags, 0); at < count; at++) {
        work(list[at].hStream, kernel_time(list[at].gridDimX));
    }
    return CUDA_SUCCESS;
}

SHOWN CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    int before = capture_mode;
    return capture_mode = *mode, *mode = before, CUDA_SUCCESS;
}

/* What a driver does not allow while a stream is captured: it ends the capture. */
static int is_unsafe(void) {
    if (!captures || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return 0;
    }
    for (int at = 0; at < captures; at++) {
        captured_streams[at]->is_spoiled = 1;
    }
    return 1;
}

SHOWN CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    if (stub_refuses("cuEventCreate", "event")) {
        return 999;
    }
    return (void)flags, *event = calloc(1, sizeof **event), CUDA_SUCCESS;
}
SHOWN CUresult cuEventDestroy_v2(CUevent event) { return free(event), CUDA_SUCCESS; }
SHOWN CUresult cuEventRecord(CUevent event, CUstream on) {
    struct stream *stream = busy_stream(on);
    if (stub_refuses("cuEventRecord", "event")) {
        return 999;
    }
    if (stream->captured) {
        stream->is_spoiled = 1;
        return 900;
    }
    int64_t at = clock_now();
    event->at = stream->end > at ? stream->end : at;
    return CUDA_SUCCESS;
}
SHOWN CUresult cuEventQuery(CUevent event) {
    if (stub_refuses("cuEventQuery", "event")) {
        return 999;
    }
    return is_unsafe() ? 900 : event->at > clock_now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
SHOWN CUresult cuEventSynchronize(CUevent event) { return sleep_until(event->at), CUDA_SUCCESS; }
SHOWN CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    if (stub_refuses("cuEventElapsedTime", "event") || !start->at || !end->at) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *milliseconds = (float)((double)(end->at - start->at) / 1e6);
    return end->at > clock_now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

SHOWN CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    return *context = of(stream) ? stream->context : now(), CUDA_SUCCESS;
}

SHOWN CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    return *status = of(stream) && stream->captured ? 1 : 0, CUDA_SUCCESS;
}

SHOWN CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    (void)mode;
    stream->captured = calloc(1, sizeof *stream->captured);
    stream->is_spoiled = 0;
    captured_streams[captures++] = stream;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    for (int at = 0; at < captures; at++) {
        if (captured_streams[at] == stream) {
            captured_streams[at] = captured_streams[--captures];
        }
    }
    *graph = stream->is_spoiled ? NULL : stream->captured;
    stream->captured = NULL;
    return stream->is_spoiled ? 901 : CUDA_SUCCESS;
}

/* Linear memory, in whole pages of FAIRLEAD_STUB_PAGE bytes. */
static uint64_t whole_pages(uint64_t size) {
    static uint64_t page;
    if (!page) {
        page = knob("FAIRLEAD_STUB_PAGE", 1);
    }
    return page > 1 ? (size + page - 1) / page * page : size;
}

static CUresult linear(CUdeviceptr *pointer, uint64_t size) {
    struct context *context = now();
    if (!context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!pointer || !size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pointer = take_address(size, 0);
    return make(POINTER, *pointer, whole_pages(size), context->device);
}

static CUresult small(CUdeviceptr_v1 *pointer, uint64_t size) {
    if (!now() || !pointer || !size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pointer = (CUdeviceptr_v1)take_address(size, 1);
    return make(POINTER, *pointer, size, now()->device);
}

CUresult stub_linear(CUdeviceptr *pointer, size_t size) { return linear(pointer, size); }
CUresult stub_linear_v1(CUdeviceptr_v1 *pointer, unsigned int size) { return small(pointer, size); }
CUresult stub_managed(CUdeviceptr *pointer, size_t size, unsigned int flags) {
    return (void)flags, linear(pointer, size);
}
CUresult stub_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                    unsigned int element) {
    (void)element;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return linear(pointer, *pitch * height);
}
CUresult stub_pitch_v1(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                       unsigned int height, unsigned int element) {
    (void)element;
    *pitch = (unsigned int)((width + PITCH - 1) / PITCH * PITCH);
    return small(pointer, (uint64_t)*pitch * height);
}
CUresult stub_free(CUdeviceptr pointer) {
    return pointer ? unmake(POINTER, pointer) : CUDA_SUCCESS;
}
CUresult stub_free_v1(CUdeviceptr_v1 pointer) { return stub_free(pointer); }

/* Managed memory moves to another GPU, whose memory it takes then. */
SHOWN CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device,
                                  CUstream stream) {
    (void)stream;
    pthread_mutex_lock(&state);
    struct block *block = find(pointer, POINTER);
    int moves = block && block->size == size && truth_add(device, size) == 0;
    if (moves) {
        truth_sub(block->gpu, size);
        block->gpu = device;
    }
    pthread_mutex_unlock(&state);
    return moves ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SHOWN CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
    struct block *block = find(pointer, POINTER);
    return block ? (*base = pointer, *size = block->size, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}

CUresult stub_memory(size_t *free_bytes, size_t *total) {
    if (!now()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!free_bytes || !total) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *total = knob_memory();
    *free_bytes = *total - truth_used(now()->device);
    return CUDA_SUCCESS;
}
CUresult stub_memory_v1(unsigned int *free_bytes, unsigned int *total) {
    size_t some, all;
    CUresult code = free_bytes && total ? stub_memory(&some, &all) : CUDA_ERROR_INVALID_VALUE;
    return code ? code : (*free_bytes = (unsigned int)some, *total = (unsigned int)all, code);
}

/* Pools: memory comes in steps, and goes back at a synchronization or a trim. */
static struct pool *pool_of(int gpu) {
    default_pools[gpu].gpu = gpu;
    return current_pools[gpu] ? current_pools[gpu] : &default_pools[gpu];
}
SHOWN CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    return *pool = pool_of(device), CUDA_SUCCESS;
}
SHOWN CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    return current_pools[device] = pool, CUDA_SUCCESS;
}
SHOWN CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    *pool = calloc(1, sizeof **pool);
    (*pool)->gpu = properties->location.id;
    return CUDA_SUCCESS;
}
SHOWN CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    pthread_mutex_lock(&state);
    *(uint64_t *)value =
        attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool->reserved : pool->used;
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}

static void shrink(struct pool *pool, uint64_t keep) {
    pthread_mutex_lock(&state);
    uint64_t least = (pool->used + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    least = least > keep ? least : keep;
    uint64_t gone = pool->reserved > least ? pool->reserved - least : 0;
    pool->reserved -= gone;
    truth_sub(pool->gpu, gone);
    pthread_mutex_unlock(&state);
}
CUresult stub_pool_trim(CUmemoryPool pool, size_t keep) {
    return shrink(pool, keep), CUDA_SUCCESS;
}
CUresult stub_pool_set(CUmemoryPool pool, int attribute, void *value) {
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->threshold = *(uint64_t *)value;
    }
    return CUDA_SUCCESS;
}
CUresult stub_pool_destroy(CUmemoryPool pool) {
    pool->is_destroyed = 1;
    return shrink(pool, 0), CUDA_SUCCESS;
}

SHOWN CUresult cuStreamSynchronize(CUstream stream) {
    struct context *context = of(stream) ? stream->context : now();
    if (context && pool_of(context->device)->reserved > pool_of(context->device)->threshold) {
        shrink(pool_of(context->device), pool_of(context->device)->threshold);
    }
    sleep_until(busy_stream(stream)->end);
    return CUDA_SUCCESS;
}

CUresult stub_from_pool(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream) {
    if (of(stream) && stream->captured) {
        *pointer = take_address(size, 0);
        return add_node(stream->captured, CU_GRAPH_NODE_TYPE_MEM_ALLOC, pool->gpu, size, NULL);
    }
    CUresult code = ordered();
    if (code) {
        return code;
    }
    pthread_mutex_lock(&state);
    uint64_t least = (pool->used + size + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    if (least > pool->reserved) {
        if (truth_add(pool->gpu, least - pool->reserved)) {
            pthread_mutex_unlock(&state);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        pool->reserved = least;
    }
    pool->used += size;
    *pointer = address(size);
    add(*pointer, POINTER, size, pool->gpu)->pool = pool;
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}
CUresult stub_async(CUdeviceptr *pointer, size_t size, CUstream stream) {
    struct context *context = of(stream) ? stream->context : now();
    return context ? stub_from_pool(pointer, size, pool_of(context->device), stream)
                   : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult stub_free_async(CUdeviceptr pointer, CUstream stream) {
    return (void)stream, unmake(POINTER, pointer);
}

/* Handles and mappings. */
CUresult stub_create(CUallocation *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
    (void)flags;
    *handle = take_address(size, 0);
    return make(HANDLE, *handle, size, prop->location.id);
}
static void put_handle(struct block *handle) {
    if (--handle->references == 0) {
        truth_sub(handle->gpu, handle->size);
        forget(handle);
    }
}
CUresult stub_release_handle(CUallocation handle) {
    pthread_mutex_lock(&state);
    struct block *block = find(handle, HANDLE);
    if (block) {
        put_handle(block);
    }
    pthread_mutex_unlock(&state);
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult stub_retain_handle(CUallocation *handle, void *at) {
    pthread_mutex_lock(&state);
    struct block *block = find((uint64_t)at, MAPPING);
    if (block) {
        block->handle->references++;
        *handle = block->handle->key;
    }
    pthread_mutex_unlock(&state);
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult stub_map(CUdeviceptr pointer, size_t size, size_t offset, CUallocation handle,
                  unsigned long long flags) {
    (void)offset, (void)flags;
    pthread_mutex_lock(&state);
    struct block *block = find(handle, HANDLE);
    if (block) {
        block->references++;
        add(pointer, MAPPING, size, block->gpu)->handle = block;
    }
    pthread_mutex_unlock(&state);
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult stub_unmap(CUdeviceptr pointer, size_t size) {
    pthread_mutex_lock(&state);
    int any = 0;
    for (uint64_t at = pointer; at < pointer + size;) {
        struct block *block = find(at, MAPPING);
        if (!block) {
            break;
        }
        any = 1;
        at += block->size;
        put_handle(block->handle);
        forget(block);
    }
    pthread_mutex_unlock(&state);
    return any ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A handle of another process: its memory is the exporter's. */
SHOWN CUresult cuMemImportFromShareableHandle(CUallocation *handle, void *of, int type) {
    (void)of, (void)type;
    *handle = take_address(4096, 0);
    pthread_mutex_lock(&state);
    add(*handle, HANDLE, 0, 0);
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}

/* Arrays: rows of 256 bytes, whole 64 KiB. */
static uint64_t array_size(uint64_t width, uint64_t height, uint64_t depth_of, int format,
                           unsigned int channels) {
    uint64_t bytes = format == 0x20 ? 4 : format == 0x10 ? 2 : 1;
    uint64_t row = (width * bytes * channels + 255) / 256 * 256;
    return (row * (height ? height : 1) * (depth_of ? depth_of : 1) + 65535) / 65536 * 65536;
}
static CUresult array(void **made, uint64_t size) {
    if (!now()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *made = (void *)take_address(size, 0);
    size *= knob("FAIRLEAD_STUB_ARRAY_TIMES", 1);
    return make(ARRAY, (uint64_t)*made, size, now()->device);
}
CUresult stub_array(CUarray *made, const CUDA_ARRAY_DESCRIPTOR *shape) {
    return array((void **)made, array_size(shape->Width, shape->Height, 1, shape->Format,
                                           shape->NumChannels));
}
CUresult stub_array_v1(CUarray *made, const CUDA_ARRAY_DESCRIPTOR_v1 *shape) {
    return array((void **)made, array_size(shape->Width, shape->Height, 1, shape->Format,
                                           shape->NumChannels));
}
CUresult stub_array_3d(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    uint64_t size = array_size(shape->Width, shape->Height, shape->Depth, shape->Format,
                               shape->NumChannels);
    return array((void **)made, shape->Flags & 0xc0 ? 0 : size);
}
CUresult stub_array_3d_v1(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape) {
    return array((void **)made, array_size(shape->Width, shape->Height, shape->Depth,
                                           shape->Format, shape->NumChannels));
}
CUresult stub_mipmapped(CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                        unsigned int levels) {
    uint64_t size = 0;
    for (unsigned int level = 0; level < levels; level++) {
        uint64_t height = shape->Height >> level, width = shape->Width >> level;
        size += array_size(width ? width : 1, height, shape->Depth, shape->Format,
                           shape->NumChannels);
    }
    return array((void **)made, size);
}
CUresult stub_array_destroy(CUarray made) { return unmake(ARRAY, (uint64_t)made); }
CUresult stub_mipmapped_destroy(CUmipmappedArray made) { return unmake(ARRAY, (uint64_t)made); }

SHOWN CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, void *made,
                                            CUdevice device) {
    struct block *block = ((void)device, find((uint64_t)made, ARRAY));
    return block ? (needs->size = block->size, CUDA_SUCCESS) : CUDA_ERROR_INVALID_HANDLE;
}
SHOWN CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs,
                                                     void *made, CUdevice device) {
    return cuArrayGetMemoryRequirements(needs, made, device);
}

/* Imports: the memory is the exporter's, so the truth does not change. */
SHOWN CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    struct block *block = find(pointer, POINTER);
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &pointer, sizeof pointer);
    if (block) {
        memcpy(handle->reserved + 8, &block->size, sizeof block->size);
    }
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult stub_ipc_open(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
    uint64_t size, at;
    memcpy(&at, handle.reserved, sizeof at);
    memcpy(&size, handle.reserved + 8, sizeof size);
    if (at && find(at, POINTER)) { /* opened once more */
        find(at, POINTER)->times++;
        return *pointer = at, CUDA_SUCCESS;
    }
    *pointer = ((void)flags, take_address(size, 0));
    pthread_mutex_lock(&state);
    struct block *block = add(*pointer, POINTER, size, now()->device);
    block->context = NULL, block->references = 0;
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}
static CUresult close_import(enum kind kind, uint64_t key) {
    pthread_mutex_lock(&state);
    struct block *block = find(key, kind);
    if (block && block->times-- == 0) {
        forget(block);
    }
    pthread_mutex_unlock(&state);
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult stub_ipc_close(CUdeviceptr pointer) { return close_import(POINTER, pointer); }
CUresult stub_pool_pointer(CUdeviceptr *pointer, CUmemoryPool pool,
                           CUmemPoolPtrExportData *shared) {
    CUipcMemHandle handle;
    memcpy(&handle, shared, sizeof handle);
    return (void)pool, stub_ipc_open(pointer, handle, 0);
}
CUresult stub_external(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle) {
    *memory = (CUexternalMemory)take_address(handle->size, 0);
    pthread_mutex_lock(&state);
    add((uint64_t)*memory, EXTERNAL, handle->size, 0);
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}
CUresult stub_external_destroy(CUexternalMemory memory) {
    return close_import(EXTERNAL, (uint64_t)memory);
}

/* Graphs: memory appears at the first launch, and stays until a trim. */
SHOWN CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
    return (void)flags, *graph = calloc(1, sizeof **graph), CUDA_SUCCESS;
}
static CUresult add_node(CUgraph graph, int type, int gpu, uint64_t size, CUgraphNode *node) {
    struct graph_node *made = calloc(1, sizeof *made);
    *made = (struct graph_node){type, gpu, size, 0, NULL, graph->nodes};
    graph->nodes = made;
    if (node) {
        *node = made;
    }
    return CUDA_SUCCESS;
}
SHOWN CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                        size_t count, CUgraph child) {
    (void)after, (void)count;
    CUresult code = add_node(graph, CU_GRAPH_NODE_TYPE_GRAPH, 0, 0, node);
    graph->nodes->child = child;
    return code;
}
CUresult stub_graph_alloc_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                               size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters) {
    (void)after, (void)count;
    parameters->dptr = take_address(parameters->bytesize, 0);
    return add_node(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, parameters->poolProps.location.id,
                    parameters->bytesize, node);
}
CUresult stub_graph_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                         CUgraphNodeParams *parameters) {
    return stub_graph_alloc_node(node, graph, after, count, &parameters->of.alloc);
}
CUresult stub_graph_node_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                            const void *edges, size_t count, CUgraphNodeParams *parameters) {
    return (void)edges, stub_graph_alloc_node(node, graph, after, count, &parameters->of.alloc);
}
SHOWN CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    size_t most = nodes ? *count : 0;
    *count = 0;
    for (struct graph_node *at = graph->nodes; at; at = at->next) {
        if (nodes && *count < most) {
            nodes[*count] = at;
        }
        ++*count;
    }
    return CUDA_SUCCESS;
}
SHOWN CUresult cuGraphNodeGetType(CUgraphNode node, int *type) {
    return *type = node->type, CUDA_SUCCESS;
}
SHOWN CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *into) {
    memset(into, 0, sizeof *into);
    into->poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, node->gpu};
    into->bytesize = node->size;
    return CUDA_SUCCESS;
}
SHOWN CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *child) {
    return *child = node->child, CUDA_SUCCESS;
}
static void sum(CUgraph graph, CUgraphExec exec) {
    for (struct graph_node *at = graph->nodes; at; at = at->next) {
        if (at->child) {
            sum(at->child, exec);
        } else {
            exec->sums[at->gpu] += at->size;
            exec->time += at->time;
        }
    }
}
CUresult stub_instantiate_flags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    CUresult code = ((void)flags, ordered());
    if (code == CUDA_SUCCESS) {
        *exec = calloc(1, sizeof **exec);
        sum(graph, *exec);
        register_object(*exec, EXEC);
    }
    return code;
}
CUresult stub_instantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log,
                          size_t size) {
    return (void)error, (void)log, (void)size, stub_instantiate_flags(exec, graph, 0);
}
CUresult stub_instantiate_params(CUgraphExec *exec, CUgraph graph, void *parameters) {
    return (void)parameters, stub_instantiate_flags(exec, graph, 0);
}
CUresult stub_graph_launch(CUgraphExec exec, CUstream stream) {
    CUresult code = CUDA_SUCCESS;
    pthread_mutex_lock(&state);
    for (int gpu = 0; !exec->is_live && gpu < TRUTH_GPUS; gpu++) {
        uint64_t more = exec->sums[gpu] > graph_free[gpu] ? exec->sums[gpu] - graph_free[gpu] : 0;
        uint64_t beyond = more ? knob("FAIRLEAD_STUB_GRAPH_BEYOND", 0) : 0;
        if (more && truth_add(gpu, more + beyond)) {
            code = CUDA_ERROR_OUT_OF_MEMORY;
            break;
        }
        graph_free[gpu] += beyond;
        graph_free[gpu] -= exec->sums[gpu] - more;
        graph_kept[gpu] += more + beyond;
    }
    exec->is_live |= code == CUDA_SUCCESS;
    pthread_mutex_unlock(&state);
    return code ? code : work(stream, exec->time);
}
CUresult stub_graph_exec_destroy(CUgraphExec exec) {
    pthread_mutex_lock(&state);
    if (!unregister(exec, EXEC)) {
        pthread_mutex_unlock(&state);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (int gpu = 0; exec->is_live && gpu < TRUTH_GPUS; gpu++) {
        graph_free[gpu] += exec->sums[gpu];
    }
    free(exec);
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}
CUresult stub_graph_trim(CUdevice device) {
    pthread_mutex_lock(&state);
    truth_sub(device, graph_free[device]);
    graph_kept[device] -= graph_free[device];
    graph_free[device] = 0;
    pthread_mutex_unlock(&state);
    return CUDA_SUCCESS;
}
SHOWN CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value) {
    return (void)attribute, *(uint64_t *)value = graph_kept[device], CUDA_SUCCESS;
}

/* The private tables of a real driver: the CUDA runtimes then end their start with error 103. */
SHOWN CUresult cuGetExportTable(const void **functions, const CUuuid *of) {
    return (void)of, *functions = NULL, CUDA_ERROR_NOT_FOUND;
}

/* An allocator of a later driver. */
SHOWN CUresult cuMemStrangeAlloc(void) { return CUDA_SUCCESS; }

/* cuGetProcAddress: the newest form that the asked version knows. */
static void *choose(const char *symbol, int version, uint64_t flags) {
    const struct stub_row *chosen = NULL;
    for (int exact = 1; exact >= 0 && !chosen; exact--) {
        for (const struct stub_row *row = stub_rows; row->symbol; row++) {
            int per_thread = exact && (flags & 2) != 0;
            if (strcmp(row->symbol, symbol) == 0 && row->since <= version &&
                row->per_thread == per_thread && (!chosen || row->since > chosen->since)) {
                chosen = row;
            }
        }
    }
    return chosen ? chosen->function : NULL;
}
SHOWN CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                   int *status) {
    if (!symbol || !function) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const char *log = getenv("FAIRLEAD_STUB_LOOKUPS");
    FILE *file = log ? fopen(log, "a") : NULL;
    if (file) {
        fprintf(file, "%s v=%d f=%d\n", symbol, version, (int)flags);
        fclose(file);
    }
    *function = *symbol ? choose(symbol, version, flags) : (void *)cuGetProcAddress_v2;
    if (status) {
        *status = *function ? 0 : 1;
    }
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
SHOWN CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
