/* Whether this process is limited, and its place in the region.
 *
 * Nothing here runs before the first call of a hooked function: a process without CUDA opens no
 * file.
 */
#include "guard.h"

#include "process.h"
#include "sys.h"
#include "table.h"

#define LIMITS_PATH "/etc/fairlead/gpu/limits"

struct limits guard_limits;
struct account guard_account;
uint32_t guard_shares;

/* A page that the kernel empties in a forked child. `ready` is 1 once the guard is. */
struct once {
    uint32_t ready;
    uint32_t lock;
    uint32_t state;
    uint32_t pid; /* where the kernel empties no page: compared at each call */
};
static struct once *once;
static uint32_t once_lock;
static int64_t looked_at;

extern char *secure_getenv(const char *name);

static size_t length(const char *text) {
    size_t size = 0;
    while (text[size]) {
        size++;
    }
    return size;
}

static void complain(const char *what) {
    static const char name[] = "fairlead-guard: ";
    sys_write(2, name, sizeof name - 1);
    sys_write(2, what, length(what));
    sys_write(2, "\n", 1);
}

void guard_log(const char *what, const char *name) {
    const char *path = secure_getenv("FAIRLEAD_GUARD_LOG");
    if (!path) {
        return;
    }
    long file = sys_call(SYS_openat, SYS_AT_FDCWD, (long)path, 02002101 /* append, create */, 0600,
                         0, 0);
    if (file >= 0) {
        sys_write(file, what, length(what));
        sys_write(file, name, length(name));
        sys_write(file, "\n", 1);
        sys_close(file);
    }
}

/* Without a region nothing can be counted. A guard that only shows then shows nothing, and passes
 * every call through.
 */
static enum guard_state without_region(const char *why) {
    if (guard_limits.is_view) {
        return GUARD_INACTIVE;
    }
    if (why) {
        complain(why);
    }
    return GUARD_CLOSED;
}

static enum guard_state open_region(void) {
    long file = sys_open(guard_limits.region, SYS_O_RDWR);
    if (file < 0) {
        return without_region("the region file cannot be opened for writing; no GPU memory is granted");
    }
    struct region *region = NULL;
    /* Without room on the file system a write to the mapping would end the process. */
    if (sys_seek_end(file) >= (long)REGION_BYTES && sys_fallocate(file, REGION_BYTES) != -28) {
        region = sys_map(REGION_BYTES, file);
    }
    sys_close(file);
    if (!region || region_check(region, REGION_BYTES)) {
        return without_region("the region file is not one of this version; no GPU memory is granted");
    }
    guard_account.region = region;
    if (process_self(&guard_account) || region_enter(&guard_account)) {
        return without_region("this process gets no slot in the region; no GPU memory is granted");
    }
    for (uint32_t gpu = 0; gpu < guard_limits.count; gpu++) {
        uint64_t percent = guard_limits.gpus[gpu].core_percent;
        guard_shares |= (uint32_t)(percent > 0 && percent < 100 && !guard_limits.is_view) << gpu;
    }
    return GUARD_ACTIVE;
}

static enum guard_state begin(void) {
    int found = limits_read(LIMITS_PATH, &guard_limits);
    if (found == 1) {
        const char *path = secure_getenv("FAIRLEAD_GUARD_LIMITS");
        found = path ? limits_read(path, &guard_limits) : 1;
    }
    if (found == 1) {
        return GUARD_INACTIVE;
    }
    if (found) {
        guard_limits.count = 0;
        guard_limits.is_view = 0;
        complain("the limits file is not understood; no GPU memory is granted");
        return GUARD_CLOSED;
    }
    for (uint32_t gpu = 0; guard_limits.is_view && gpu < guard_limits.count; gpu++) {
        guard_limits.gpus[gpu].core_percent = 0;
    }
    return open_region();
}

/* After a fork the child has none of its parent's memory, and takes a slot of its own. */
static enum guard_state begin_again(void) {
    cuda_forget();
    if (!guard_account.region) {
        return guard_limits.count ? without_region(NULL) : begin();
    }
    if (process_self(&guard_account) || region_enter(&guard_account)) {
        guard_account.slot = REGION_SLOTS;
        return without_region(NULL);
    }
    return GUARD_ACTIVE;
}

static enum guard_state begun(void) {
    static int is_child;
    local_lock(&once_lock);
    if (!once) {
        struct once *page = sys_map(4096, -1);
        if (!page) {
            local_unlock(&once_lock);
            return GUARD_CLOSED;
        }
        if (sys_wipe_on_fork(page, 4096)) {
            page->pid = (uint32_t)sys_getpid();
        }
        once = page;
    }
    local_unlock(&once_lock);
    local_lock(&once->lock);
    if (!once->ready) {
        once->state = is_child ? begin_again() : begin();
        is_child = 1;
        __atomic_store_n(&once->ready, 1, __ATOMIC_RELEASE);
    }
    enum guard_state state = once->state;
    local_unlock(&once->lock);
    return state;
}

enum guard_state guard_state(void) {
    struct once *page = __atomic_load_n(&once, __ATOMIC_ACQUIRE);
    if (page && page->pid && page->pid != (uint32_t)sys_getpid()) {
        *page = (struct once){0, 0, 0, (uint32_t)sys_getpid()};
    }
    if (page && __atomic_load_n(&page->ready, __ATOMIC_ACQUIRE)) {
        return page->state;
    }
    return begun();
}

int guard_is_view(void) { return guard_state() == GUARD_ACTIVE && guard_limits.is_view; }

uint64_t guard_limit(int gpu) {
    return gpu < 0 || guard_state() != GUARD_ACTIVE ? 0 : guard_limits.gpus[gpu].bytes;
}

int guard_gpu(const char *uuid) {
    for (uint32_t gpu = 0; gpu < guard_limits.count; gpu++) {
        size_t at = 0;
        while (uuid[at] && uuid[at] == guard_limits.gpus[gpu].uuid[at]) {
            at++;
        }
        if (uuid[at] == guard_limits.gpus[gpu].uuid[at]) {
            return (int)gpu;
        }
    }
    return -1;
}

int guard_reserve(int gpu, uint64_t size) {
    if (size == 0) {
        return 0;
    }
    if (guard_is_view()) {
        if (gpu >= 0) {
            region_reserve(&guard_account, (uint32_t)gpu, size, UINT64_MAX);
        }
        return 0;
    }
    if (gpu < 0 || guard_state() != GUARD_ACTIVE) {
        return -1;
    }
    return region_reserve(&guard_account, (uint32_t)gpu, size, guard_limits.gpus[gpu].bytes);
}

void guard_release(int gpu, uint64_t size) {
    if (gpu >= 0 && size) {
        region_release(&guard_account, (uint32_t)gpu, size);
    }
}

uint64_t guard_used(int gpu) {
    if (gpu < 0 || !guard_account.region) {
        return 0;
    }
    /* Looking for the dead reads /proc, so it happens four times a second at most, and each time for
     * a part of the processes.
     */
    int64_t now = sys_nanoseconds();
    int64_t last = __atomic_load_n(&looked_at, __ATOMIC_RELAXED);
    if (now - last > 250000000 && __atomic_compare_exchange_n(&looked_at, &last, now, 0,
                                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        region_reap(&guard_account);
    }
    return __atomic_load_n(&guard_account.region->gpus[gpu].used, __ATOMIC_ACQUIRE);
}

void guard_count_unknown(void) {
    if (guard_state() == GUARD_ACTIVE) {
        region_unknown(&guard_account, guard_limits.count);
    }
}

/* The driver takes the memory back after this, so a slot with bytes stays until the process is
 * gone.
 */
__attribute__((destructor)) static void leave(void) {
    struct once *page = once;
    if (page && page->ready && page->state == GUARD_ACTIVE &&
        !(page->pid && page->pid != (uint32_t)sys_getpid())) {
        region_leave(&guard_account);
    }
}
