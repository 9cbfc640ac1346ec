/* Memory of pools: what a pool reserved counts, not its live blocks. */
#include "charge.h"

#define MIB (1ull << 20)
#define POOL_STEP (32 * MIB)

static struct table pools;
static uint32_t pool_lock;
static int has_pools;

void pools_forget(void) {
    table_forget(&pools);
    pool_lock = 0;
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

/* Make the bill of a pool what it reserved; `ours`, which the caller reserved beside the bill, goes
 * into it. -1 where there is no room for all that it reserved; the bill is then too small.
 */
static int settle_pool(CUmemoryPool pool, int gpu, uint64_t ours) {
    struct entry bill = {(uint64_t)pool, 0, 0, 0, gpu, 1};
    uint64_t give = 0;
    int answer = 0;
    enter_pools();
    table_find(&pools, bill.key, &bill);
    bill.size += ours;
    uint64_t reserved = pool_has(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (reserved == UINT64_MAX) {
        reserved = bill.size; /* not known: nothing is given back */
    }
    if (reserved > bill.size) {
        answer = guard_reserve(gpu, reserved - bill.size);
    } else {
        give = bill.size - reserved;
    }
    if (answer == 0) {
        bill.size = reserved;
    }
    table_put(&pools, &bill);
    leave_pools();
    guard_release(gpu, give);
    return answer;
}

/* A bill, before the driver is asked: once it is there, its size can always be changed. */
static int begin_bill(CUmemoryPool pool, int gpu) {
    struct entry bill = {(uint64_t)pool, 0, 0, 0, gpu, 1};
    if (table_find(&pools, bill.key, &bill)) {
        return 0;
    }
    __atomic_store_n(&has_pools, 1, __ATOMIC_RELEASE);
    return table_put(&pools, &bill);
}

/* `context` of a bill: the last round that settled it; `other`: 0 until its pool is destroyed. */
static uint64_t settling;

static int is_unsettled(const struct entry *entry, uint64_t gpu) {
    return entry->gpu == (int)gpu && entry->context != settling && !entry->other;
}

int settle_pools(int gpu, int trim) {
    struct entry bill;
    int any = 0;
    if (!__atomic_load_n(&has_pools, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    enter_pools();
    settling++;
    while (table_find_any(&pools, is_unsettled, (uint64_t)gpu, &bill)) {
        any = 1;
        bill.context = settling;
        table_put(&pools, &bill);
        CUresult (*trimmed)(CUmemoryPool, size_t) = CALL(cuMemPoolTrimTo, (CUmemoryPool, size_t));
        if (trim && trimmed) {
            trimmed((CUmemoryPool)bill.key, 0);
        }
        settle_pool((CUmemoryPool)bill.key, gpu, 0);
    }
    leave_pools();
    return any;
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
    if (begin_bill(pool, place->gpu)) {
        return guard_is_view() ? real(call) : NO_MEMORY;
    }
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
    if ((settle_pool(pool, place->gpu, ours) || table_put(&pointers, &entry)) && !guard_is_view()) {
        undo_async(*pointer, stream);
        CUresult (*trimmed)(CUmemoryPool, size_t) = CALL(cuMemPoolTrimTo, (CUmemoryPool, size_t));
        if (trimmed) {
            trimmed(pool, 0);
        }
        settle_pool(pool, place->gpu, 0);
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

/* A pool lives on while a block of it does. Its bill then stays until the last of them is freed,
 * under a key that no pool has, because the driver may use the handle again.
 */
CUresult on_pool_destroy(CUresult (*real)(CUmemoryPool), CUmemoryPool pool) {
    static uint64_t destroyed;
    struct entry bill, block;
    int had_bill = table_take(&pools, (uint64_t)pool, &bill);
    CUresult code = real(pool);
    if (!had_bill) {
        return code;
    }
    if (code != CUDA_SUCCESS) {
        table_put(&pools, &bill);
        return code;
    }
    bill.key = bill.other = __atomic_add_fetch(&destroyed, 2, __ATOMIC_RELAXED) | 1;
    bill.count = 1; /* ours, until all blocks are seen */
    table_put(&pools, &bill);
    while (table_take_any(&pointers, is_in_pool, (uint64_t)pool, &block)) {
        block.other = bill.key;
        table_count(&pools, bill.key, 1, &bill);
        table_put(&pointers, &block);
    }
    pool_block_freed(bill.key);
    return code;
}

void pool_block_freed(uint64_t destroyed_pool) {
    struct entry bill;
    if ((destroyed_pool & 1) && table_count(&pools, destroyed_pool, -1, &bill) &&
        bill.count == 0) {
        table_take(&pools, destroyed_pool, &bill);
        guard_release(bill.gpu, bill.size);
    }
}

/* A block of a pool has no bill of its own: what the pool reserved is counted. */
CUresult on_free_async(CUresult (*real)(CUdeviceptr, CUstream), CUdeviceptr pointer,
                       CUstream stream) {
    RELEASED(&pointers, pointer, real(pointer, stream));
}
