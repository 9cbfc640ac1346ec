/* What each hooked function of CUDA does: reserve, call the driver, settle or roll back.
 *
 * Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard. Every function gets the
 * driver's own one as `real`. An entry leaves its table before the driver frees, because the driver
 * may give the same address to another thread as soon as it has.
 */
#include "driver.h"
#include "guard.h"
#include "sys.h"
#include "table.h"

#define MIB (1ull << 20)
#define POOL_STEP (32 * MIB)
#define NO_MEMORY CUDA_ERROR_OUT_OF_MEMORY
#define CALL(name, type) ((CUresult(*) type)resolve_helper(HELPER_##name))

/* Where a call allocates. `gpu`: index in the limits file, -1 where it is not listed. */
struct place {
    CUcontext context;
    CUdevice device;
    int gpu;
};

static struct table pointers, arrays, handles, mappings, externals, execs, pools, contexts, values;
static uint32_t pool_lock, graph_lock, device_lock;
static uint64_t graph_sum[REGION_GPUS], graph_extra[REGION_GPUS];
static int has_graphs, has_pools;

#define MOST_DEVICES 64
static int device_gpu[MOST_DEVICES]; /* index + 2; 0: not asked yet */

void cuda_forget(void) {
    table_forget(&pointers), table_forget(&arrays), table_forget(&handles);
    table_forget(&mappings), table_forget(&externals), table_forget(&execs);
    table_forget(&pools), table_forget(&contexts), table_forget(&values);
    pool_lock = graph_lock = device_lock = 0;
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        graph_sum[gpu] = graph_extra[gpu] = 0;
    }
}

/* a * b, or the largest number. */
static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t round_up(uint64_t size, uint64_t step) {
    return size > UINT64_MAX - step ? UINT64_MAX : (size + step - 1) / step * step;
}

/* The index in the limits file: UNLISTED where it has none, NO_DEVICE where the driver has no such
 * device.
 */
enum { UNLISTED = -1, NO_DEVICE = -2 };

static int gpu_of(CUdevice device) {
    if (device < 0 || device >= MOST_DEVICES) {
        return NO_DEVICE;
    }
    int known = __atomic_load_n(&device_gpu[device], __ATOMIC_ACQUIRE);
    if (known) {
        return known - 2;
    }
    CUuuid uuid;
    CUresult (*ask)(CUuuid *, CUdevice) = CALL(cuDeviceGetUuid_v2, (CUuuid *, CUdevice));
    if (!ask) {
        ask = CALL(cuDeviceGetUuid, (CUuuid *, CUdevice));
    }
    CUresult code = ask ? ask(&uuid, device) : CUDA_ERROR_NOT_FOUND;
    if (code != CUDA_SUCCESS) {
        return code == CUDA_ERROR_INVALID_DEVICE ? NO_DEVICE : UNLISTED;
    }
    char text[48] = "GPU-";
    char *at = text + 4;
    for (int byte = 0; byte < 16; byte++) {
        static const char digits[] = "0123456789abcdef";
        if (byte == 4 || byte == 6 || byte == 8 || byte == 10) {
            *at++ = '-';
        }
        *at++ = digits[uuid.bytes[byte] >> 4];
        *at++ = digits[uuid.bytes[byte] & 15];
    }
    int gpu = guard_gpu(text);
    __atomic_store_n(&device_gpu[device], gpu + 2, __ATOMIC_RELEASE);
    return gpu;
}

/* Where a call of the current context allocates; the driver's code where it has none. */
static CUresult here(struct place *place) {
    *place = (struct place){NULL, -1, -1};
    CUresult (*context)(CUcontext *) = CALL(cuCtxGetCurrent, (CUcontext *));
    CUresult (*device)(CUdevice *) = CALL(cuCtxGetDevice, (CUdevice *));
    if (!context || !device) {
        return NO_MEMORY;
    }
    CUresult code = context(&place->context);
    if (code == CUDA_SUCCESS) {
        code = device(&place->device);
    }
    if (code == CUDA_SUCCESS) {
        place->gpu = gpu_of(place->device);
    }
    return code;
}

static uint64_t pool_has(CUmemoryPool pool, int attribute) {
    uint64_t bytes = 0;
    CUresult (*ask)(CUmemoryPool, int, void *) =
        CALL(cuMemPoolGetAttribute, (CUmemoryPool, int, void *));
    return ask && ask(pool, attribute, &bytes) == CUDA_SUCCESS
               ? bytes
               : UINT64_MAX;
}

/* One thread at a time works on pools, so that what one of them has free cannot go to another
 * between a look and a call. It is a lock of this process; it may be held across a driver call.
 */
static __thread int in_pools;

static void enter_pools(void) {
    if (in_pools++ == 0) {
        local_lock(&pool_lock);
    }
}

static void leave_pools(void) {
    if (--in_pools == 0) {
        local_unlock(&pool_lock);
    }
}

/* Make the bill of a pool what it reserved. `ours`: what the caller has reserved for it beside the
 * bill. -1 where there is no room for what it reserved; the bill is then as before, and `ours` kept.
 */
static int settle_pool(CUmemoryPool pool, int gpu, uint64_t ours) {
    struct entry bill = {(uint64_t)pool, 0, 0, 0, gpu, 1};
    uint64_t give = 0;
    int answer = 0;
    enter_pools();
    table_find(&pools, bill.key, &bill);
    uint64_t reserved = pool_has(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (reserved == UINT64_MAX) {
        reserved = bill.size + ours; /* not known: nothing is given back */
    }
    if (reserved > bill.size + ours) {
        answer = guard_reserve(gpu, reserved - bill.size - ours);
    } else {
        give = bill.size + ours - reserved;
    }
    if (answer == 0) {
        bill.size = reserved;
        __atomic_store_n(&has_pools, 1, __ATOMIC_RELEASE);
        answer = table_put(&pools, &bill);
    }
    leave_pools();
    guard_release(gpu, answer ? 0 : give);
    return answer;
}

static int is_of_gpu(const struct entry *entry, uint64_t gpu) { return entry->gpu == (int)gpu; }

/* Settle the pools of a GPU; `trim` gives what is free in them to the driver first. */
static int settle_pools(int gpu, int trim) {
    struct table seen = {0};
    struct entry pool;
    int any = 0;
    if (!__atomic_load_n(&has_pools, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    enter_pools();
    while (table_take_any(&pools, is_of_gpu, (uint64_t)gpu, &pool)) {
        table_put(&seen, &pool);
        any = 1;
    }
    while (table_take_any(&seen, is_of_gpu, (uint64_t)gpu, &pool)) {
        table_put(&pools, &pool);
        CUresult (*trimmed)(CUmemoryPool, size_t) = CALL(cuMemPoolTrimTo, (CUmemoryPool, size_t));
        if (trim && trimmed) {
            trimmed((CUmemoryPool)pool.key, 0);
        }
        settle_pool((CUmemoryPool)pool.key, gpu, 0);
    }
    leave_pools();
    return any;
}

/* Reserve, after trimming this process's pools if there is no room. -1: out of memory. */
static int charge(int gpu, uint64_t size) {
    if (guard_reserve(gpu, size) == 0) {
        return 0;
    }
    return gpu >= 0 && settle_pools(gpu, 1) ? guard_reserve(gpu, size) : -1;
}

/* After the driver: keep the charge under `key`, or give it back. -1: the caller frees `key`. */
static int keep(struct table *table, CUresult code, uint64_t key, const struct place *place,
                uint64_t size) {
    struct entry entry = {key, size, (uint64_t)place->context, 0, place->gpu, 1};
    if (code != CUDA_SUCCESS || key == 0) {
        guard_release(place->gpu, size);
        return 0;
    }
    return table_put(table, &entry);
}

/* A call that no current context explains: the driver answers, and keeps nothing. */
#define WITHOUT_CONTEXT(call, undo)                                                                \
    do {                                                                                           \
        CUresult answered = (call);                                                                \
        if (answered != CUDA_SUCCESS) {                                                            \
            return answered;                                                                       \
        }                                                                                          \
        undo;                                                                                      \
        return NO_MEMORY;                                                                          \
    } while (0)

static void undo_pointer(CUdeviceptr pointer) {
    CUresult (*freed)(CUdeviceptr) = CALL(cuMemFree_v2, (CUdeviceptr));
    if (freed) {
        freed(pointer);
    }
}

/* Linear memory: the size is known. `call` allocates into `*pointer`. */
#define LINEAR(call, pointer, bytes)                                                               \
    struct place place;                                                                            \
    if (!(pointer) || !(bytes)) {                                                                  \
        return (call);                                                                             \
    }                                                                                              \
    if (here(&place) != CUDA_SUCCESS) {                                                            \
        WITHOUT_CONTEXT(call, undo_pointer(*(pointer)));                                           \
    }                                                                                              \
    if (charge(place.gpu, (bytes))) {                                                              \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    if (keep(&pointers, code, code == CUDA_SUCCESS ? *(pointer) : 0, &place, (bytes))) {           \
        undo_pointer(*(pointer));                                                                  \
        guard_release(place.gpu, (bytes));                                                         \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    return code

CUresult on_linear(CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *pointer, size_t size) {
    LINEAR(real(pointer, size), pointer, size);
}

CUresult on_linear_v1(CUresult (*real)(CUdeviceptr_v1 *, unsigned int), CUdeviceptr_v1 *pointer,
                      unsigned int size) {
    LINEAR(real(pointer, size), pointer, size);
}

CUresult on_managed(CUresult (*real)(CUdeviceptr *, size_t, unsigned int), CUdeviceptr *pointer,
                    size_t size, unsigned int flags) {
    LINEAR(real(pointer, size, flags), pointer, size);
}

/* The driver chooses the pitch: reserve for rows of 4096 bytes, settle to the one it chose. */
#define PITCHED(call)                                                                              \
    struct place place;                                                                            \
    if (!pointer || !pitch || !width || !height) {                                                 \
        return (call);                                                                             \
    }                                                                                              \
    if (here(&place) != CUDA_SUCCESS) {                                                            \
        WITHOUT_CONTEXT(call, undo_pointer(*pointer));                                             \
    }                                                                                              \
    uint64_t bound = times(round_up(width, 4096), height);                                         \
    uint64_t least = times(round_up(width, 32), height);                                           \
    if (charge(place.gpu, bound)) {                                                                \
        /* Near the limit the driver's own pitch may still fit: try rows of 512. */                \
        bound = times(round_up(width, 512), height);                                               \
        if (bound < least || charge(place.gpu, bound)) {                                           \
            return NO_MEMORY;                                                                      \
        }                                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    uint64_t real_size = code == CUDA_SUCCESS ? times(*pitch, height) : bound;                     \
    if (real_size > bound && guard_reserve(place.gpu, real_size - bound)) {                        \
        undo_pointer(*pointer);                                                                    \
        guard_release(place.gpu, bound);                                                           \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    guard_release(place.gpu, real_size < bound ? bound - real_size : 0);                           \
    if (keep(&pointers, code, code == CUDA_SUCCESS ? *pointer : 0, &place, real_size)) {           \
        undo_pointer(*pointer);                                                                    \
        guard_release(place.gpu, real_size);                                                       \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    return code

CUresult on_pitch(CUresult (*real)(CUdeviceptr *, size_t *, size_t, size_t, unsigned int),
                  CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                  unsigned int element) {
    PITCHED(real(pointer, pitch, width, height, element));
}

CUresult on_pitch_v1(CUresult (*real)(CUdeviceptr_v1 *, unsigned int *, unsigned int, unsigned int,
                                      unsigned int),
                     CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                     unsigned int height, unsigned int element) {
    PITCHED(real(pointer, pitch, width, height, element));
}

static int is_capturing(CUstream stream) {
    int status = 0;
    CUresult (*ask)(CUstream, int *) = CALL(cuStreamIsCapturing, (CUstream, int *));
    return ask && ask(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* The context of a stream, which may not be the current one. */
static CUresult there(CUstream stream, struct place *place) {
    CUresult (*of)(CUstream, CUcontext *) = CALL(cuStreamGetCtx, (CUstream, CUcontext *));
    CUresult (*push)(CUcontext) = CALL(cuCtxPushCurrent_v2, (CUcontext));
    CUresult (*pop)(CUcontext *) = CALL(cuCtxPopCurrent_v2, (CUcontext *));
    CUcontext context = NULL;
    if ((uintptr_t)stream > 2 && of && push && pop && of(stream, &context) == CUDA_SUCCESS &&
        context && push(context) == CUDA_SUCCESS) {
        CUresult code = here(place);
        pop(&context);
        return code;
    }
    return here(place);
}

/* Whether a pool has room that it has reserved already, and that is billed. */
static int has_room(CUmemoryPool pool, uint64_t size) {
    struct entry bill;
    uint64_t reserved = pool_has(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = pool_has(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    return reserved != UINT64_MAX && used <= reserved && size <= reserved - used &&
           table_find(&pools, (uint64_t)pool, &bill) && bill.size >= reserved;
}

static CUresult in_pool(CUresult (*real)(void *), void *call, CUdeviceptr *pointer, size_t size,
                        CUmemoryPool pool, const struct place *place, CUstream stream) {
    uint64_t ours = round_up(size, POOL_STEP);
    if (guard_reserve(place->gpu, ours)) {
        /* Near the limit: what the pool has free serves, else what a trim of it gives back. */
        if (place->gpu >= 0 && has_room(pool, size)) {
            ours = 0;
        } else if (charge(place->gpu, ours)) {
            return NO_MEMORY;
        }
    }
    CUresult code = real(call);
    if (code != CUDA_SUCCESS) {
        guard_release(place->gpu, ours);
        return code;
    }
    struct entry entry = {*pointer, size, (uint64_t)place->context, (uint64_t)pool, place->gpu, 0};
    if (settle_pool(pool, place->gpu, ours) || table_put(&pointers, &entry)) {
        CUresult (*freed)(CUdeviceptr, CUstream) =
            CALL(cuMemFreeAsync, (CUdeviceptr, CUstream));
        if (freed) {
            freed(*pointer, stream);
        }
        settle_pool(pool, place->gpu, ours);
        return NO_MEMORY;
    }
    return code;
}

struct async_call {
    CUresult (*async)(CUdeviceptr *, size_t, CUstream);
    CUresult (*from)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
    CUdeviceptr *pointer;
    size_t size;
    CUmemoryPool pool;
    CUstream stream;
};

static CUresult call_async(void *call) {
    struct async_call *of = call;
    return of->async ? of->async(of->pointer, of->size, of->stream)
                     : of->from(of->pointer, of->size, of->pool, of->stream);
}

static void undo_async(CUdeviceptr pointer, CUstream stream) {
    CUresult (*freed)(CUdeviceptr, CUstream) = CALL(cuMemFreeAsync, (CUdeviceptr, CUstream));
    if (freed) {
        freed(pointer, stream);
    }
}

CUresult on_async(CUresult (*real)(CUdeviceptr *, size_t, CUstream), CUdeviceptr *pointer,
                  size_t size, CUstream stream) {
    struct place place;
    struct async_call call = {real, NULL, pointer, size, NULL, stream};
    CUresult (*ask)(CUmemoryPool *, CUdevice) =
        CALL(cuDeviceGetMemPool, (CUmemoryPool *, CUdevice));
    if (!pointer || !size || is_capturing(stream)) {
        return real(pointer, size, stream);
    }
    if (there(stream, &place) != CUDA_SUCCESS || !ask ||
        ask(&call.pool, place.device) != CUDA_SUCCESS) {
        WITHOUT_CONTEXT(real(pointer, size, stream), undo_async(*pointer, stream));
    }
    enter_pools();
    CUresult code = in_pool(call_async, &call, pointer, size, call.pool, &place, stream);
    leave_pools();
    return code;
}

CUresult on_from_pool(CUresult (*real)(CUdeviceptr *, size_t, CUmemoryPool, CUstream),
                      CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream) {
    struct place place;
    struct async_call call = {NULL, real, pointer, size, pool, stream};
    if (!pointer || !size || !pool || is_capturing(stream)) {
        return real(pointer, size, pool, stream);
    }
    if (there(stream, &place) != CUDA_SUCCESS) {
        WITHOUT_CONTEXT(real(pointer, size, pool, stream), undo_async(*pointer, stream));
    }
    enter_pools();
    CUresult code = in_pool(call_async, &call, pointer, size, pool, &place, stream);
    leave_pools();
    return code;
}

static int pool_gpu(CUmemoryPool pool) {
    struct entry bill;
    return table_find(&pools, (uint64_t)pool, &bill) ? bill.gpu : -1;
}

CUresult on_pool_trim(CUresult (*real)(CUmemoryPool, size_t), CUmemoryPool pool, size_t bytes) {
    enter_pools();
    CUresult code = real(pool, bytes);
    int gpu = pool_gpu(pool);
    if (code == CUDA_SUCCESS && gpu >= 0) {
        settle_pool(pool, gpu, 0);
    }
    leave_pools();
    return code;
}

CUresult on_pool_set(CUresult (*real)(CUmemoryPool, int, void *), CUmemoryPool pool, int attribute,
                     void *value) {
    CUresult code = real(pool, attribute, value);
    int gpu = pool_gpu(pool);
    if (code == CUDA_SUCCESS && gpu >= 0) {
        settle_pool(pool, gpu, 0);
    }
    return code;
}

static int is_in_pool(const struct entry *entry, uint64_t pool) {
    return entry->other == pool && entry->count == 0;
}

/* A pool lives on while a block of it does: each block then has a bill of its own. */
CUresult on_pool_destroy(CUresult (*real)(CUmemoryPool), CUmemoryPool pool) {
    struct entry bill, block;
    uint64_t live = 0;
    int had_bill = table_take(&pools, (uint64_t)pool, &bill);
    CUresult code = real(pool);
    if (!had_bill) {
        return code;
    }
    if (code != CUDA_SUCCESS) {
        table_put(&pools, &bill);
        return code;
    }
    while (table_take_any(&pointers, is_in_pool, (uint64_t)pool, &block)) {
        uint64_t left = bill.size - live;
        block.size = block.size < left ? block.size : left;
        block.count = 1;
        live += block.size;
        table_put(&pointers, &block);
    }
    guard_release(bill.gpu, bill.size - live);
    return code;
}

CUresult on_create(CUresult (*real)(CUallocation *, size_t, const CUmemAllocationProp *,
                                    unsigned long long),
                   CUallocation *handle, size_t size, const CUmemAllocationProp *prop,
                   unsigned long long flags) {
    if (!handle || !prop || !size || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return real(handle, size, prop, flags);
    }
    struct place place = {NULL, prop->location.id, gpu_of(prop->location.id)};
    if (charge(place.gpu, size)) {
        return NO_MEMORY;
    }
    CUresult code = real(handle, size, prop, flags);
    if (keep(&handles, code, code == CUDA_SUCCESS ? *handle : 0, &place, size)) {
        CUresult (*released)(CUallocation) = CALL(cuMemRelease, (CUallocation));
        if (released) {
            released(*handle);
        }
        guard_release(place.gpu, size);
        return NO_MEMORY;
    }
    return code;
}

/* One reference or mapping less, before the driver is asked. Returns the bytes that go with it. */
static uint64_t drop(CUallocation handle, struct entry *entry) {
    if (table_count(&handles, handle, -1, entry) && entry->count == 0) {
        table_take(&handles, handle, entry);
        return entry->size;
    }
    return 0;
}

static void undrop(CUallocation handle, const struct entry *entry, uint64_t bytes) {
    struct entry again = *entry;
    if (bytes) {
        again.count = 1;
        table_put(&handles, &again);
    } else {
        table_count(&handles, handle, 1, &again);
    }
}

CUresult on_release_handle(CUresult (*real)(CUallocation), CUallocation handle) {
    struct entry entry = {0};
    uint64_t bytes = drop(handle, &entry);
    CUresult code = real(handle);
    if (code != CUDA_SUCCESS) {
        undrop(handle, &entry, bytes);
    } else {
        guard_release(entry.gpu, bytes);
    }
    return code;
}

CUresult on_retain_handle(CUresult (*real)(CUallocation *, void *), CUallocation *handle,
                          void *address) {
    struct entry entry;
    CUresult code = real(handle, address);
    if (code == CUDA_SUCCESS && handle) {
        table_count(&handles, *handle, 1, &entry);
    }
    return code;
}

/* Memory of a handle that this process created is counted there; else it is an import. */
CUresult on_map(CUresult (*real)(CUdeviceptr, size_t, size_t, CUallocation, unsigned long long),
                CUdeviceptr pointer, size_t size, size_t offset, CUallocation handle,
                unsigned long long flags) {
    struct entry entry = {0};
    struct entry mapping = {pointer, size, 0, handle, -1, 1};
    int is_ours = table_count(&handles, handle, 1, &entry);
    if (!is_ours && size) {
        struct place place;
        if (here(&place) != CUDA_SUCCESS || charge(place.gpu, size)) {
            return NO_MEMORY;
        }
        mapping.gpu = place.gpu;
    }
    CUresult code = real(pointer, size, offset, handle, flags);
    if (code == CUDA_SUCCESS) {
        table_put(&mappings, &mapping);
    } else if (is_ours) {
        guard_release(entry.gpu, drop(handle, &entry));
    } else {
        guard_release(mapping.gpu, size);
    }
    return code;
}

CUresult on_unmap(CUresult (*real)(CUdeviceptr, size_t), CUdeviceptr pointer, size_t size) {
    uint64_t end = pointer + size;
    struct table dropped = {0};
    struct entry mapping, entry;
    for (uint64_t at = pointer; at < end && table_find(&mappings, at, &mapping) && mapping.size;
         at += mapping.size) {
        if (mapping.gpu < 0 && drop(mapping.other, &entry)) {
            table_put(&dropped, &entry);
        }
    }
    CUresult code = real(pointer, size);
    for (uint64_t at = pointer; at < end && table_find(&mappings, at, &mapping) && mapping.size;
         at += mapping.size) {
        int was_last = table_take(&dropped, mapping.other, &entry);
        if (code != CUDA_SUCCESS) {
            if (mapping.gpu < 0) {
                undrop(mapping.other, &entry, was_last ? entry.size : 0);
            }
            continue;
        }
        table_take(&mappings, at, &mapping);
        if (mapping.gpu >= 0) {
            guard_release(mapping.gpu, mapping.size);
        } else if (was_last) {
            guard_release(entry.gpu, entry.size);
        }
    }
    return code;
}

/* Bytes of one channel; 16 for the formats of compressed and video textures. */
static uint64_t bytes_of(int format) {
    switch (format) {
    case 0x01:
    case 0x08:
        return 1;
    case 0x02:
    case 0x09:
    case 0x10:
        return 2;
    case 0x03:
    case 0x0a:
    case 0x20:
        return 4;
    default:
        return 16;
    }
}

/* An upper bound: rows of whole 512 bytes, 8 rows, 64 KiB; all levels of a pyramid are at most
 * twice the first.
 */
static uint64_t array_bound(uint64_t width, uint64_t height, uint64_t depth, int format,
                            unsigned int channels, unsigned int levels) {
    uint64_t row = round_up(times(width, times(bytes_of(format), channels ? channels : 1)), 512);
    uint64_t rows = height > 1 ? round_up(height, 8) : 1;
    uint64_t one = round_up(times(times(row, rows), depth ? depth : 1), 65536);
    return levels > 1 ? times(one, 2) + 65536ull * (levels < 64 ? levels : 64) : one;
}

static uint64_t required(int is_mipmapped, void *array, CUdevice device, uint64_t bound) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUresult (*ask)(CUDA_ARRAY_MEMORY_REQUIREMENTS *, void *, CUdevice) =
        is_mipmapped ? CALL(cuMipmappedArrayGetMemoryRequirements,
                            (CUDA_ARRAY_MEMORY_REQUIREMENTS *, void *, CUdevice))
                     : CALL(cuArrayGetMemoryRequirements,
                            (CUDA_ARRAY_MEMORY_REQUIREMENTS *, void *, CUdevice));
    return ask && ask(&needs, array, device) == CUDA_SUCCESS ? needs.size : bound;
}

static void undo_array(void *array, int is_mipmapped) {
    CUresult (*destroyed)(void *) = is_mipmapped ? CALL(cuMipmappedArrayDestroy, (void *))
                                                 : CALL(cuArrayDestroy, (void *));
    if (destroyed) {
        destroyed(array);
    }
}

/* After the driver made the array: settle to what it needs. */
static CUresult keep_array(CUresult code, void *array, const struct place *place, uint64_t bound,
                           int is_mipmapped) {
    uint64_t size = bound;
    if (code == CUDA_SUCCESS) {
        size = required(is_mipmapped, array, place->device, bound);
        if (size > bound && guard_reserve(place->gpu, size - bound)) {
            undo_array(array, is_mipmapped);
            guard_release(place->gpu, bound);
            return NO_MEMORY;
        }
        guard_release(place->gpu, size < bound ? bound - size : 0);
    }
    if (keep(&arrays, code, (uint64_t)array, place, size)) {
        undo_array(array, is_mipmapped);
        guard_release(place->gpu, size);
        return NO_MEMORY;
    }
    return code;
}

#define ARRAY(call, array, bound_of, mipmapped)                                                    \
    struct place place;                                                                            \
    if (here(&place) != CUDA_SUCCESS) {                                                            \
        WITHOUT_CONTEXT(call, undo_array(*(array), mipmapped));                                    \
    }                                                                                              \
    uint64_t bound = (bound_of);                                                                   \
    if (charge(place.gpu, bound)) {                                                                \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    return keep_array(code, code == CUDA_SUCCESS ? (void *)*(array) : NULL, &place, bound,         \
                      mipmapped)

CUresult on_array(CUresult (*real)(CUarray *, const CUDA_ARRAY_DESCRIPTOR *), CUarray *array,
                  const CUDA_ARRAY_DESCRIPTOR *shape) {
    if (!array || !shape) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 1), 0);
}

CUresult on_array_v1(CUresult (*real)(CUarray *, const CUDA_ARRAY_DESCRIPTOR_v1 *), CUarray *array,
                     const CUDA_ARRAY_DESCRIPTOR_v1 *shape) {
    if (!array || !shape) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 1), 0);
}

static int is_unmapped(unsigned int flags) {
    return (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

CUresult on_array_3d(CUresult (*real)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *), CUarray *array,
                     const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    if (!array || !shape || is_unmapped(shape->Flags)) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels,
                      1),
          0);
}

CUresult on_array_3d_v1(CUresult (*real)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR_v1 *),
                        CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape) {
    if (!array || !shape || is_unmapped(shape->Flags)) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels,
                      1),
          0);
}

CUresult on_mipmapped(CUresult (*real)(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *,
                                       unsigned int),
                      CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                      unsigned int levels) {
    if (!array || !shape || is_unmapped(shape->Flags)) {
        return real(array, shape, levels);
    }
    ARRAY(real(array, shape, levels), array,
          array_bound(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels,
                      levels),
          1);
}

/* Take the entry of a key out, call the driver, and release the entry or put it back. */
#define RELEASED(table, key, call)                                                                 \
    struct entry entry;                                                                            \
    int had_entry = table_take(table, (uint64_t)(key), &entry);                                    \
    CUresult code = (call);                                                                        \
    if (had_entry && code != CUDA_SUCCESS) {                                                       \
        table_put(table, &entry);                                                                  \
    } else if (had_entry) {                                                                        \
        guard_release(entry.gpu, entry.count ? entry.size : 0);                                    \
    }                                                                                              \
    return code

CUresult on_free(CUresult (*real)(CUdeviceptr), CUdeviceptr pointer) {
    RELEASED(&pointers, pointer, real(pointer));
}

CUresult on_free_v1(CUresult (*real)(CUdeviceptr_v1), CUdeviceptr_v1 pointer) {
    RELEASED(&pointers, pointer, real(pointer));
}

/* A block of a pool has no bill of its own: what the pool reserved is counted. */
CUresult on_free_async(CUresult (*real)(CUdeviceptr, CUstream), CUdeviceptr pointer,
                       CUstream stream) {
    RELEASED(&pointers, pointer, real(pointer, stream));
}

CUresult on_array_destroy(CUresult (*real)(CUarray), CUarray array) {
    RELEASED(&arrays, array, real(array));
}

CUresult on_mipmapped_destroy(CUresult (*real)(CUmipmappedArray), CUmipmappedArray array) {
    RELEASED(&arrays, array, real(array));
}

CUresult on_external_destroy(CUresult (*real)(CUexternalMemory), CUexternalMemory memory) {
    RELEASED(&externals, memory, real(memory));
}

/* The size of an import is known when it is there. It is not new memory, so it is charged then. */
static CUresult keep_import(CUresult code, CUdeviceptr *pointer, void (*undo)(CUdeviceptr)) {
    struct place place;
    struct entry entry;
    size_t size = 0;
    if (code != CUDA_SUCCESS || !pointer || table_count(&pointers, *pointer, 1, &entry)) {
        return code;
    }
    CUresult (*ask)(CUdeviceptr *, size_t *, CUdeviceptr) =
        CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr));
    CUdeviceptr base;
    if (here(&place) != CUDA_SUCCESS || !ask || ask(&base, &size, *pointer) != CUDA_SUCCESS ||
        charge(place.gpu, size)) {
        undo(*pointer);
        return NO_MEMORY;
    }
    if (keep(&pointers, code, *pointer, &place, size)) {
        undo(*pointer);
        guard_release(place.gpu, size);
        return NO_MEMORY;
    }
    return code;
}

static void undo_ipc(CUdeviceptr pointer) {
    CUresult (*closed)(CUdeviceptr) = CALL(cuIpcCloseMemHandle, (CUdeviceptr));
    if (closed) {
        closed(pointer);
    }
}

CUresult on_ipc_open(CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned int),
                     CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
    return keep_import(real(pointer, handle, flags), pointer, undo_ipc);
}

CUresult on_ipc_close(CUresult (*real)(CUdeviceptr), CUdeviceptr pointer) {
    struct entry entry;
    if (table_count(&pointers, pointer, -1, &entry) && entry.count) {
        CUresult code = real(pointer);
        if (code != CUDA_SUCCESS) {
            table_count(&pointers, pointer, 1, &entry);
        }
        return code;
    }
    int had_entry = table_take(&pointers, pointer, &entry);
    CUresult code = real(pointer);
    if (had_entry && code != CUDA_SUCCESS) {
        entry.count = 1;
        table_put(&pointers, &entry);
    } else if (had_entry) {
        guard_release(entry.gpu, entry.size);
    }
    return code;
}

CUresult on_pool_pointer(CUresult (*real)(CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *),
                         CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *shared) {
    return keep_import(real(pointer, pool, shared), pointer, undo_pointer);
}

CUresult on_external(CUresult (*real)(CUexternalMemory *, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *),
                     CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle) {
    struct place place;
    if (!memory || !handle || !handle->size) {
        return real(memory, handle);
    }
    CUresult (*destroyed)(CUexternalMemory) = CALL(cuDestroyExternalMemory, (CUexternalMemory));
    if (here(&place) != CUDA_SUCCESS) {
        WITHOUT_CONTEXT(real(memory, handle), destroyed ? destroyed(*memory) : 0);
    }
    uint64_t size = handle->size;
    if (charge(place.gpu, size)) {
        return NO_MEMORY;
    }
    CUresult code = real(memory, handle);
    if (keep(&externals, code, code == CUDA_SUCCESS ? (uint64_t)*memory : 0, &place, size)) {
        if (destroyed) {
            destroyed(*memory);
        }
        guard_release(place.gpu, size);
        return NO_MEMORY;
    }
    return code;
}

/* Graphs: memory of their nodes appears at a launch, so an executable graph is charged when it is
 * made, for as long as it lives. What the driver keeps beyond that is charged beside it.
 */
static int node_fits(const CUDA_MEM_ALLOC_NODE_PARAMS *node) {
    return !node || node->bytesize <= guard_limit(gpu_of(node->poolProps.location.id));
}

CUresult on_graph_alloc_node(CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                                              CUDA_MEM_ALLOC_NODE_PARAMS *),
                             CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                             size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters) {
    return node_fits(parameters) ? real(node, graph, after, count, parameters) : NO_MEMORY;
}

static int params_fit(const CUgraphNodeParams *parameters) {
    return !parameters || parameters->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
           node_fits(&parameters->of.alloc);
}

CUresult on_graph_node(CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                                        CUgraphNodeParams *),
                       CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                       CUgraphNodeParams *parameters) {
    return params_fit(parameters) ? real(node, graph, after, count, parameters) : NO_MEMORY;
}

CUresult on_graph_node_v2(CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *,
                                           const void *, size_t, CUgraphNodeParams *),
                          CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                          const void *edges, size_t count, CUgraphNodeParams *parameters) {
    return params_fit(parameters) ? real(node, graph, after, edges, count, parameters) : NO_MEMORY;
}

#define GRAPH_DEPTH 8

/* Add the bytes of a graph's allocation nodes to `sums`, by GPU. -1: they cannot be known. */
static int add_nodes(CUgraph graph, uint64_t *sums, int depth) {
    CUresult (*nodes_of)(CUgraph, CUgraphNode *, size_t *) =
        CALL(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *));
    CUresult (*type_of)(CUgraphNode, int *) = CALL(cuGraphNodeGetType, (CUgraphNode, int *));
    CUresult (*alloc_of)(CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *) =
        CALL(cuGraphMemAllocNodeGetParams, (CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *));
    CUresult (*child_of)(CUgraphNode, CUgraph *) =
        CALL(cuGraphChildGraphNodeGetGraph, (CUgraphNode, CUgraph *));
    size_t count = 0;
    if (!alloc_of) {
        return 0; /* a driver before 11.4 has no such nodes */
    }
    if (depth > GRAPH_DEPTH || !nodes_of || !type_of ||
        nodes_of(graph, NULL, &count) != CUDA_SUCCESS) {
        return -1;
    }
    if (count == 0) {
        return 0;
    }
    size_t bytes = round_up(count * sizeof(CUgraphNode), 4096);
    CUgraphNode *nodes = sys_map(bytes, -1);
    int answer = !nodes || nodes_of(graph, nodes, &count) != CUDA_SUCCESS ? -1 : 0;
    for (size_t at = 0; answer == 0 && at < count; at++) {
        int type = -1;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        CUgraph child = NULL;
        if (type_of(nodes[at], &type) != CUDA_SUCCESS) {
            answer = -1;
        } else if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            int gpu = alloc_of(nodes[at], &alloc) == CUDA_SUCCESS
                          ? gpu_of(alloc.poolProps.location.id)
                          : -1;
            if (gpu < 0 || sums[gpu] + alloc.bytesize < sums[gpu]) {
                answer = -1;
            } else {
                sums[gpu] += alloc.bytesize;
            }
        } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
            answer = child_of && child_of(nodes[at], &child) == CUDA_SUCCESS
                         ? add_nodes(child, sums, depth + 1)
                         : -1;
        }
    }
    if (nodes) {
        sys_unmap(nodes, bytes);
    }
    return answer;
}

static uint64_t graph_reserved(int gpu) {
    uint64_t bytes = 0;
    CUresult (*ask)(CUdevice, int, void *) =
        CALL(cuDeviceGetGraphMemAttribute, (CUdevice, int, void *));
    for (int device = 0; ask && device < MOST_DEVICES; device++) {
        if (device_gpu[device] == gpu + 2) {
            return ask(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) == CUDA_SUCCESS
                       ? bytes
                       : 0;
        }
    }
    return 0;
}

/* The bill of a GPU's graphs is the larger of their sum and of what the driver keeps for them.
 * `change` is added to the sum; the caller has reserved it already, or has not given it back.
 */
static void settle_graphs(int gpu, int64_t change) {
    local_lock(&graph_lock);
    uint64_t before = graph_sum[gpu] + graph_extra[gpu] + (change > 0 ? (uint64_t)change : 0);
    graph_sum[gpu] += (uint64_t)change;
    uint64_t reserved = graph_reserved(gpu);
    uint64_t after = reserved > graph_sum[gpu] ? reserved : graph_sum[gpu];
    if (after > before && guard_reserve(gpu, after - before)) {
        after = before;
    }
    graph_extra[gpu] = after - graph_sum[gpu];
    local_unlock(&graph_lock);
    guard_release(gpu, before > after ? before - after : 0);
}

static uint64_t exec_key(CUgraphExec exec, uint32_t gpu) {
    return (uint64_t)exec * REGION_GPUS + gpu;
}

static void give_back(const uint64_t *sums, uint32_t end) {
    for (uint32_t gpu = 0; gpu < end; gpu++) {
        guard_release((int)gpu, sums[gpu]);
    }
}

static int charge_nodes(CUgraph graph, uint64_t *sums) {
    if (add_nodes(graph, sums, 0)) {
        return -1;
    }
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        if (charge((int)gpu, sums[gpu])) {
            give_back(sums, gpu);
            return -1;
        }
    }
    return 0;
}

static void keep_exec(CUresult code, CUgraphExec *exec, const uint64_t *sums) {
    if (code != CUDA_SUCCESS) {
        give_back(sums, REGION_GPUS);
        return;
    }
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        if (sums[gpu]) {
            struct entry entry = {exec_key(*exec, gpu), sums[gpu], 0, 0, (int)gpu, 1};
            __atomic_store_n(&has_graphs, 1, __ATOMIC_RELEASE);
            table_put(&execs, &entry);
            settle_graphs((int)gpu, (int64_t)sums[gpu]);
        }
    }
}

#define INSTANTIATED(call)                                                                         \
    uint64_t sums[REGION_GPUS] = {0};                                                              \
    if (!exec || !graph) {                                                                         \
        return (call);                                                                             \
    }                                                                                              \
    if (charge_nodes(graph, sums)) {                                                               \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    keep_exec(code, exec, sums);                                                                   \
    return code

CUresult on_instantiate(CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t),
                        CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log,
                        size_t size) {
    INSTANTIATED(real(exec, graph, error, log, size));
}

CUresult on_instantiate_flags(CUresult (*real)(CUgraphExec *, CUgraph, unsigned long long),
                              CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    INSTANTIATED(real(exec, graph, flags));
}

CUresult on_instantiate_params(CUresult (*real)(CUgraphExec *, CUgraph, void *), CUgraphExec *exec,
                               CUgraph graph, void *parameters) {
    INSTANTIATED(real(exec, graph, parameters));
}

CUresult on_graph_launch(CUresult (*real)(CUgraphExec, CUstream), CUgraphExec exec,
                         CUstream stream) {
    CUresult code = real(exec, stream);
    struct entry entry;
    if (code == CUDA_SUCCESS && __atomic_load_n(&has_graphs, __ATOMIC_ACQUIRE)) {
        for (uint32_t gpu = 0; gpu < guard_limits.count; gpu++) {
            if (table_find(&execs, exec_key(exec, gpu), &entry)) {
                settle_graphs((int)gpu, 0);
            }
        }
    }
    return code;
}

CUresult on_graph_exec_destroy(CUresult (*real)(CUgraphExec), CUgraphExec exec) {
    struct entry found[REGION_GPUS];
    uint32_t count = 0;
    if (__atomic_load_n(&has_graphs, __ATOMIC_ACQUIRE)) {
        for (uint32_t gpu = 0; gpu < guard_limits.count; gpu++) {
            count += (uint32_t)table_take(&execs, exec_key(exec, gpu), &found[count]);
        }
    }
    CUresult code = real(exec);
    for (uint32_t at = 0; at < count; at++) {
        if (code == CUDA_SUCCESS) {
            settle_graphs(found[at].gpu, -(int64_t)found[at].size);
        } else {
            table_put(&execs, &found[at]);
        }
    }
    return code;
}

CUresult on_graph_trim(CUresult (*real)(CUdevice), CUdevice device) {
    CUresult code = real(device);
    int gpu = gpu_of(device);
    if (code == CUDA_SUCCESS && gpu >= 0) {
        settle_graphs(gpu, 0);
    }
    return code;
}

/* Contexts: each costs `context_bytes`, and takes what was allocated in it with it. */
static uint64_t context_bytes(int gpu) { return gpu < 0 ? 0 : guard_limits.gpus[gpu].context_bytes; }

static int charge_context(int gpu) {
    return guard_limit(gpu) ? charge(gpu, context_bytes(gpu)) : -1;
}

static void keep_context(CUresult code, uint64_t key, CUcontext context, int gpu) {
    struct entry entry = {key, context_bytes(gpu), (uint64_t)context, 0, gpu, 1};
    if (code != CUDA_SUCCESS || table_put(&contexts, &entry)) {
        guard_release(gpu, entry.size);
    }
}

#define CONTEXT(call)                                                                              \
    int gpu = gpu_of(device);                                                                      \
    if (!context || gpu == NO_DEVICE) {                                                            \
        return (call);                                                                             \
    }                                                                                              \
    if (charge_context(gpu)) {                                                                     \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    keep_context(code, code == CUDA_SUCCESS ? (uint64_t)*context : 0,                              \
                 code == CUDA_SUCCESS ? (CUcontext)*context : NULL, gpu);                          \
    return code

CUresult on_context(CUresult (*real)(CUcontext *, unsigned int, CUdevice), CUcontext *context,
                    unsigned int flags, CUdevice device) {
    CONTEXT(real(context, flags, device));
}

CUresult on_context_v3(CUresult (*real)(CUcontext *, void *, int, unsigned int, CUdevice),
                       CUcontext *context, void *affinity, int count, unsigned int flags,
                       CUdevice device) {
    CONTEXT(real(context, affinity, count, flags, device));
}

CUresult on_context_v4(CUresult (*real)(CUcontext *, void *, unsigned int, CUdevice),
                       CUcontext *context, void *parameters, unsigned int flags, CUdevice device) {
    CONTEXT(real(context, parameters, flags, device));
}

CUresult on_green_context(CUresult (*real)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned int),
                          CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
                          unsigned int flags) {
    CONTEXT(real(context, resources, device, flags));
}

/* The primary context has the key of its device, and is counted. */
static uint64_t primary_key(CUdevice device) { return (uint64_t)device + 1; }

static uint32_t primary_lock;

CUresult on_primary_retain(CUresult (*real)(CUcontext *, CUdevice), CUcontext *context,
                           CUdevice device) {
    struct entry entry;
    int gpu = gpu_of(device);
    if (gpu == NO_DEVICE) {
        return real(context, device);
    }
    local_lock(&primary_lock);
    CUresult code = NO_MEMORY;
    if (table_find(&contexts, primary_key(device), &entry)) {
        code = real(context, device);
        if (code == CUDA_SUCCESS) {
            table_count(&contexts, primary_key(device), 1, &entry);
        }
    } else if (charge_context(gpu) == 0) {
        code = real(context, device);
        keep_context(code, primary_key(device), code == CUDA_SUCCESS ? *context : NULL, gpu);
    }
    local_unlock(&primary_lock);
    return code;
}

static int is_of_context(const struct entry *entry, uint64_t context) {
    return entry->context == context && entry->count;
}

/* Everything of a context leaves its table before the driver is asked, and then counts or returns. */
static struct table *const of_contexts[] = {&pointers, &arrays, &values};

static void take_context(uint64_t context, struct table *taken) {
    struct entry entry;
    for (int each = 0; each < 3; each++) {
        while (context && table_take_any(of_contexts[each], is_of_context, context, &entry)) {
            table_put(&taken[each], &entry);
        }
    }
}

static void end_context(int is_gone, uint64_t context, struct table *taken) {
    struct entry entry;
    for (int each = 0; each < 3; each++) {
        while (table_take_any(&taken[each], is_of_context, context, &entry)) {
            if (is_gone) {
                guard_release(entry.gpu, entry.size);
            } else {
                table_put(of_contexts[each], &entry);
            }
        }
    }
}

CUresult on_context_destroy(CUresult (*real)(CUcontext), CUcontext context) {
    struct table taken[3] = {0};
    struct entry entry;
    int had_entry = table_take(&contexts, (uint64_t)context, &entry);
    take_context((uint64_t)context, taken);
    CUresult code = real(context);
    end_context(code == CUDA_SUCCESS, (uint64_t)context, taken);
    if (had_entry && code == CUDA_SUCCESS) {
        guard_release(entry.gpu, entry.size);
    } else if (had_entry) {
        table_put(&contexts, &entry);
    }
    return code;
}

CUresult on_green_destroy(CUresult (*real)(CUgreenCtx), CUgreenCtx context) {
    return on_context_destroy((CUresult(*)(CUcontext))real, (CUcontext)context);
}

static int is_active(CUdevice device) {
    unsigned int flags;
    int active = 1;
    CUresult (*ask)(CUdevice, unsigned int *, int *) =
        CALL(cuDevicePrimaryCtxGetState, (CUdevice, unsigned int *, int *));
    return !ask || ask(device, &flags, &active) != CUDA_SUCCESS || active;
}

/* `by`: references that go; 0 for all. */
static CUresult leave_primary(CUresult (*real)(CUdevice), CUdevice device, int by) {
    struct table taken[3] = {0};
    struct entry entry = {0};
    local_lock(&primary_lock);
    int had_entry = table_find(&contexts, primary_key(device), &entry);
    if (!had_entry || (by && entry.count > 1)) {
        CUresult code = real(device);
        if (had_entry && code == CUDA_SUCCESS) {
            table_count(&contexts, primary_key(device), -1, &entry);
        }
        local_unlock(&primary_lock);
        return code;
    }
    take_context(entry.context, taken);
    CUresult code = real(device);
    int is_gone = code == CUDA_SUCCESS && !is_active(device);
    end_context(is_gone, entry.context, taken);
    if (is_gone) {
        table_take(&contexts, primary_key(device), &entry);
    }
    local_unlock(&primary_lock);
    guard_release(entry.gpu, is_gone ? entry.size : 0);
    return code;
}

CUresult on_primary_release(CUresult (*real)(CUdevice), CUdevice device) {
    return leave_primary(real, device, 1);
}

CUresult on_primary_reset(CUresult (*real)(CUdevice), CUdevice device) {
    return leave_primary(real, device, 0);
}

/* Heap, FIFO and stack of kernels: what is set counts from then on. */
CUresult on_context_limit(CUresult (*real)(int, size_t), int limit, size_t value) {
    struct place place;
    if (limit < CU_LIMIT_STACK_SIZE || limit > CU_LIMIT_MALLOC_HEAP_SIZE ||
        here(&place) != CUDA_SUCCESS) {
        return real(limit, value);
    }
    uint64_t size = value;
    if (limit == CU_LIMIT_STACK_SIZE) {
        int cores = 1, threads = 1;
        CUresult (*ask)(int *, int, CUdevice) = CALL(cuDeviceGetAttribute, (int *, int, CUdevice));
        if (ask) {
            ask(&cores, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, place.device);
            ask(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, place.device);
        }
        size = times(size, times((uint64_t)cores, (uint64_t)threads));
    }
    struct entry entry = {(uint64_t)place.context * 4 + (uint64_t)limit, size,
                          (uint64_t)place.context, 0, place.gpu, 1};
    struct entry old = {0};
    if (charge(place.gpu, size)) {
        return NO_MEMORY;
    }
    CUresult code = real(limit, value);
    if (code != CUDA_SUCCESS) {
        guard_release(place.gpu, size);
        return code;
    }
    int had_old = table_take(&values, entry.key, &old);
    table_put(&values, &entry);
    guard_release(old.gpu, had_old ? old.size : 0);
    return code;
}

/* Views. NULL goes to the driver. */
static CUresult shown(CUresult code, uint64_t *free, uint64_t *total) {
    struct place place;
    if (code != CUDA_SUCCESS || here(&place) != CUDA_SUCCESS) {
        return code;
    }
    uint64_t limit = guard_limit(place.gpu);
    if (place.gpu >= 0) {
        settle_pools(place.gpu, 0);
    }
    uint64_t used = guard_used(place.gpu);
    uint64_t left = used < limit ? limit - used : 0;
    *free = *free < left ? *free : left;
    *total = *total < limit ? *total : limit;
    return code;
}

CUresult on_memory(CUresult (*real)(size_t *, size_t *), size_t *free, size_t *total) {
    uint64_t some, all;
    CUresult code = real(free, total);
    if (code == CUDA_SUCCESS && free && total) {
        some = *free, all = *total;
        code = shown(code, &some, &all);
        *free = some, *total = all;
    }
    return code;
}

CUresult on_memory_v1(CUresult (*real)(unsigned int *, unsigned int *), unsigned int *free,
                      unsigned int *total) {
    uint64_t some, all;
    CUresult code = real(free, total);
    if (code == CUDA_SUCCESS && free && total) {
        some = *free, all = *total;
        code = shown(code, &some, &all);
        *free = (unsigned int)some, *total = (unsigned int)all;
    }
    return code;
}

CUresult on_total(CUresult (*real)(size_t *, CUdevice), size_t *bytes, CUdevice device) {
    CUresult code = real(bytes, device);
    if (code == CUDA_SUCCESS && bytes) {
        uint64_t limit = guard_limit(gpu_of(device));
        *bytes = *bytes < limit ? *bytes : limit;
    }
    return code;
}

CUresult on_total_v1(CUresult (*real)(unsigned int *, CUdevice), unsigned int *bytes,
                     CUdevice device) {
    CUresult code = real(bytes, device);
    if (code == CUDA_SUCCESS && bytes) {
        uint64_t limit = guard_limit(gpu_of(device));
        *bytes = *bytes < limit ? *bytes : (unsigned int)limit;
    }
    return code;
}
