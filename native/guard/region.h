/* The region: what the processes of one container share, mapped from one file.
 *
 * Specification: docs/spec/gpu-sharing.md#limits-file-and-region. The node agent writes the file
 * with `src/fairlead/wire/kubelet/region_file.py`; `tests/native/test_layout.py` compares the two.
 * Any process of the container can overwrite it, so nothing read from it is trusted as an index,
 * and the limits are not in it.
 */
#ifndef FAIRLEAD_REGION_H
#define FAIRLEAD_REGION_H

#include <stddef.h>
#include <stdint.h>

#define REGION_MAGIC 0x5247464cu /* "LFGR" */
#define REGION_VERSION 1u
#define REGION_GPUS 32u
#define REGION_SLOTS 1024u
#define REGION_BYTES 290816u /* whole pages of 4 KiB */

struct region_gpu {
    uint64_t used;
    uint64_t peak;
    uint64_t denied;
    uint64_t unknown_allocators;
};

/* `identity`: pid, and the low half of its start time above it; 0 is an empty slot. */
struct region_slot {
    uint64_t identity;
    uint64_t start;
    uint64_t pid_namespace;
    uint64_t bytes[REGION_GPUS];
};

/* `paid`: the moment of the monotonic clock, in nanoseconds, up to which the container has used its
 * share of a GPU's time.
 */
struct region {
    uint32_t magic;
    uint32_t version;
    uint64_t generation;
    uint32_t lock;
    uint32_t unused[11];
    struct region_gpu gpus[REGION_GPUS];
    struct region_slot slots[REGION_SLOTS];
    int64_t paid[REGION_GPUS];
};

/* A process's own side of a region. `owed`: releases that found the lock taken for too long.
 * `judged`: where region_reap goes on.
 */
struct account {
    struct region *region;
    uint64_t identity;
    uint64_t start;
    uint64_t pid_namespace;
    uint32_t slot; /* REGION_SLOTS: none */
    uint64_t owed[REGION_GPUS];
    uint32_t judged;
};

/* Whether the process of a slot is gone; a process that cannot be judged is not. */
typedef int (*region_is_dead)(const struct account *, const struct region_slot *);

/* 0 on success; -1 where the file is not a region of this layout. */
int region_check(const struct region *region, size_t size);

/* Take an empty slot; -1 where living processes have them all, or the lock is not to be had. */
int region_enter(struct account *account);

/* Leave the region: a slot without bytes becomes free. */
void region_leave(struct account *account);

/* Empty the slots of dead processes, among the next REGION_JUDGED that are taken. */
#define REGION_JUDGED 32u
void region_reap(struct account *account);

/* Reserve before the driver is called; -1 means out of memory. `limit` is in bytes. */
int region_reserve(struct account *account, uint32_t gpu, uint64_t size, uint64_t limit);

/* Give back what the driver freed or did not allocate. */
void region_release(struct account *account, uint32_t gpu, uint64_t size);

/* A name that allocates and that the table does not know: counted for all GPUs below `gpus`. */
void region_unknown(struct account *account, uint32_t gpus);

/* GPU time is a debt that passes as the clock does. `cost`: GPU time divided by the share, below 0 to
 * give back. Returns the moment at which all of it is paid. A container that was idle has at most
 * REGION_WINDOW to its credit. A debt of more than REGION_MOST_DEBT is not one of this clock, and
 * counts as none. All in nanoseconds; no lock is taken.
 */
#define REGION_WINDOW 100000000ll
#define REGION_MOST_DEBT 10000000000ll
int64_t region_spend(struct account *account, uint32_t gpu, int64_t cost, int64_t now);

/* How long a reservation, and a release, waits for the lock of another process. */
extern int64_t region_reserve_wait;
extern int64_t region_release_wait;
extern region_is_dead region_judge;

#ifdef GUARD_STEPS
/* The test build calls this before each store; the numbers are those of `At` in
 * src/fairlead/rules/devices/guard/steps.py.
 */
void region_step(int at);
#define STEP(at) region_step(at)
#else
#define STEP(at) ((void)0)
#endif

#endif
