/* What the hooks of CUDA share: where a call allocates, and how it is charged.
 *
 * Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard. Every `on_LOGIC` gets the
 * driver's own function as `real`: it reserves, calls the driver, and settles or rolls back. An
 * entry leaves its table before the driver frees, because the driver may give the same address to
 * another thread as soon as it has.
 */
#ifndef FAIRLEAD_CHARGE_H
#define FAIRLEAD_CHARGE_H

#include "driver.h"
#include "guard.h"
#include "table.h"

#define NO_MEMORY CUDA_ERROR_OUT_OF_MEMORY
#define CALL(name, type) ((CUresult(*) type)resolve_helper(HELPER_##name))

/* Where a call allocates. `gpu`: index in the limits file, -1 where it is not listed. */
struct place {
    CUcontext context;
    CUdevice device;
    int gpu;
};

/* What of this process belongs to a context: pointers and arrays. */
extern struct table pointers, arrays;

/* a * b, or the largest number. */
static inline uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t round_up(uint64_t size, uint64_t step) {
    return size > UINT64_MAX - step ? UINT64_MAX : (size + step - 1) / step * step;
}

/* The index in the limits file: UNLISTED where it has none, NO_DEVICE where the driver has no such
 * device.
 */
enum { UNLISTED = -1, NO_DEVICE = -2 };
int gpu_of(CUdevice device);

/* The device of an index, once gpu_of was asked for it; -1 before. */
CUdevice device_of(int gpu);

/* Where a call of the current context allocates; the driver's code where it has none. */
CUresult here(struct place *place);

/* Reserve, after trimming this process's pools if there is no room. -1: out of memory. */
int charge(int gpu, uint64_t size);

/* After the driver: keep the charge under `key`, or give it back. -1: the caller frees `key`. */
int keep(struct table *table, CUresult code, uint64_t key, const struct place *place,
         uint64_t size);

/* Give back to the driver what may not be kept. */
void undo_pointer(CUdeviceptr pointer);
void undo_async(CUdeviceptr pointer, CUstream stream);
void undo_array(void *array, int is_mipmapped);
void undo_handle(CUallocation handle);
void undo_external(CUexternalMemory memory);
void undo_ipc(CUdeviceptr pointer);

/* Settle the pools of a GPU; `trim` gives what is free in them to the driver first. Whether there
 * are any.
 */
int settle_pools(int gpu, int trim);

/* A block without a bill of its own is gone: the last one takes the bill of its destroyed pool with
 * it. 0, or the handle of a living pool: nothing.
 */
void pool_block_freed(uint64_t destroyed_pool);

/* A forked child has none of its parent's memory, and lacks the threads that hold its locks. */
void handles_forget(void), imports_forget(void), pools_forget(void);
void graphs_forget(void), contexts_forget(void);

/* A call that no current context explains: the driver answers, and keeps nothing, except where the
 * guard only shows.
 */
#define WITHOUT_CONTEXT(call, undo)                                                                \
    do {                                                                                           \
        CUresult answered = (call);                                                                \
        if (answered != CUDA_SUCCESS || guard_is_view()) {                                         \
            return answered;                                                                       \
        }                                                                                          \
        undo;                                                                                      \
        return NO_MEMORY;                                                                          \
    } while (0)

/* Take the entry of a key out, call the driver, and release the entry or put it back. */
#define RELEASED(table, key, call)                                                                 \
    struct entry entry;                                                                            \
    int had_entry = table_take(table, (uint64_t)(key), &entry);                                    \
    CUresult code = (call);                                                                        \
    if (had_entry && code != CUDA_SUCCESS) {                                                       \
        table_put(table, &entry);                                                                  \
    } else if (had_entry) {                                                                        \
        guard_release(entry.gpu, entry.count ? entry.size : 0);                                    \
        pool_block_freed(entry.count ? 0 : entry.other);                                           \
    }                                                                                              \
    return code

#ifndef GUARD_UNDO
#include "mutable.h"
#endif

#endif
