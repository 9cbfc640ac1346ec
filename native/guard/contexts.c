/* Contexts: each costs `context_bytes`, and takes what was allocated in it with it. */
#include "charge.h"

static struct table contexts, values;
static uint32_t primary_lock;

void contexts_forget(void) {
    table_forget(&contexts), table_forget(&values);
    primary_lock = 0;
}

static uint64_t context_bytes(int gpu) {
    return gpu < 0 ? 0 : guard_limits.gpus[gpu].context_bytes;
}

static int charge_context(int gpu) {
    return guard_limit(gpu) || guard_is_view() ? charge(gpu, context_bytes(gpu)) : -1;
}

static void keep_context(CUresult code, uint64_t key, CUcontext context, int gpu) {
    struct entry entry = {key, context_bytes(gpu), (uint64_t)context, 0, gpu, 1};
    if (code != CUDA_SUCCESS) {
        guard_release(gpu, entry.size);
    } else {
        table_put(&contexts, &entry); /* without room for it, it stays counted */
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

/* Everything of a context leaves its table before the driver is asked; then counts or returns. */
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
    throttle_leave(context);
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
    throttle_leave((CUcontext)entry.context);
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
    if (limit < CU_LIMIT_STACK_SIZE || limit > CU_LIMIT_MALLOC_HEAP_SIZE) {
        return real(limit, value);
    }
    CUresult code = here(&place);
    if (code != CUDA_SUCCESS) {
        /* Also the driver's answer where there is no context. */
        return guard_is_view() ? real(limit, value) : code;
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
    code = real(limit, value);
    if (code != CUDA_SUCCESS) {
        guard_release(place.gpu, size);
        return code;
    }
    int had_old = table_take(&values, entry.key, &old);
    table_put(&values, &entry);
    guard_release(old.gpu, had_old ? old.size : 0);
    return code;
}
