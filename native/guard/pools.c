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

/* Make the bill of a pool what it reserved. `ours`: what the caller has reserved for it beside the
 * bill. -1 where there is no room for what it reserved; the bill is then as before, `ours` kept.
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

int settle_pools(int gpu, int trim) {
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

/* A block of a pool has no bill of its own: what the pool reserved is counted. */
CUresult on_free_async(CUresult (*real)(CUdeviceptr, CUstream), CUdeviceptr pointer,
                       CUstream stream) {
    RELEASED(&pointers, pointer, real(pointer, stream));
}
