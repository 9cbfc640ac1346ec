/* The account of a region: reserve before the driver allocates, release after it freed.
 *
 * Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard. The model of this file is
 * src/fairlead/rules/devices/guard/steps.py: the same stores in the same order.
 *
 * At every instant: bytes that the driver gave <= used <= limit. A process that dies between two
 * stores leaves the lock taken; the next one takes it over and counts `used` again from the slots.
 */
#include "region.h"

#include "process.h"
#include "sys.h"

_Static_assert(sizeof(struct region) <= REGION_BYTES, "the region fits its file");
_Static_assert(offsetof(struct region, gpus) == 64, "the head is 64 bytes");

enum { AT_LOCK = 1, AT_RECOUNT, AT_CHECK, AT_REAP_USED, AT_REAP_SLOT, AT_SLOT_UP, AT_USED_UP };
enum { AT_UNLOCK = 8, AT_USED_DOWN = 10, AT_SLOT_DOWN };

/* The lock: whether somebody sleeps, the slot of the owner + 1, and a count of acquisitions. A
 * process that was slow to judge an owner dead cannot take the lock from a later one: the count
 * differs.
 */
#define LOCK_WAITERS 0x1u
#define LOCK_OWNER 0xffeu
#define LOCK_COUNT 0xfffff000u
#define LOCK_ONE 0x1000u

int64_t region_reserve_wait = 2000000000;
int64_t region_release_wait = 200000000;
region_is_dead region_judge = process_is_dead;

static const int64_t NAP = 2000000;
static const int SPINS = 64;

#define GET(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define PUT(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELEASE)

int region_check(const struct region *region, size_t size) {
    return size >= REGION_BYTES && region->magic == REGION_MAGIC &&
                   region->version == REGION_VERSION
               ? 0
               : -1;
}

static int is_mine(const struct account *account) {
    return account->slot < REGION_SLOTS &&
           GET(account->region->slots[account->slot].identity) == account->identity;
}

static void recount(struct region *region) {
    STEP(AT_RECOUNT);
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        uint64_t sum = 0;
        for (uint32_t slot = 0; slot < REGION_SLOTS; slot++) {
            uint64_t bytes = GET(region->slots[slot].bytes[gpu]);
            sum = sum + bytes < sum ? UINT64_MAX : sum + bytes;
        }
        PUT(region->gpus[gpu].used, sum);
        if (sum > GET(region->gpus[gpu].peak)) {
            PUT(region->gpus[gpu].peak, sum);
        }
    }
}

/* Whether the owner that `word` names can never release the lock. */
static int is_orphaned(const struct account *account, uint32_t word) {
    uint32_t owner = (word & LOCK_OWNER) >> 1;
    if (owner > REGION_SLOTS) {
        return 1;
    }
    const struct region_slot *slot = &account->region->slots[owner - 1];
    return GET(slot->identity) == 0 || region_judge(account, slot);
}

/* 0 when this process owns the lock; -1 after `wait` nanoseconds, or without a slot. */
static int lock(struct account *account, int64_t wait) {
    uint32_t *word = &account->region->lock;
    uint32_t mine = (account->slot + 1) << 1;
    uint32_t slept = 0;
    int64_t since = 0;
    STEP(AT_LOCK);
    for (int turn = 0;; turn++) {
        uint32_t seen = GET(*word);
        uint32_t next = ((seen & LOCK_COUNT) + LOCK_ONE) | mine | slept;
        if ((seen & LOCK_OWNER) == 0) {
            if (__atomic_compare_exchange_n(word, &seen, next | (seen & LOCK_WAITERS), 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
                return 0;
            }
            continue;
        }
        if (turn < SPINS && wait > 0) {
            continue;
        }
        if (is_orphaned(account, seen)) {
            if (__atomic_compare_exchange_n(word, &seen, next | (seen & LOCK_WAITERS), 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
                recount(account->region);
                return 0;
            }
            continue;
        }
        int64_t now = sys_nanoseconds();
        since = since ? since : now;
        if (now - since >= wait) {
            return -1;
        }
        if (!(seen & LOCK_WAITERS) &&
            !__atomic_compare_exchange_n(word, &seen, seen | LOCK_WAITERS, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED)) {
            continue;
        }
        slept = LOCK_WAITERS;
        sys_futex_wait(word, seen | LOCK_WAITERS, NAP);
    }
}

/* Only the owner's own lock is released: not that of a process which took it over, nor, in a
 * child that was forked meanwhile, its parent's.
 */
static void unlock(struct account *account) {
    STEP(AT_UNLOCK);
    uint32_t *word = &account->region->lock;
    uint32_t mine = (account->slot + 1) << 1;
    uint32_t seen = GET(*word);
    while ((seen & LOCK_OWNER) == mine) {
        if (__atomic_compare_exchange_n(word, &seen, seen & LOCK_COUNT, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            if (seen & LOCK_WAITERS) {
                sys_futex_wake(word, 1);
            }
            return;
        }
    }
}

/* Under the lock. `used` goes down before the slot, so that used >= truth at every instant. */
static void lower(struct region *region, uint32_t slot, uint32_t gpu, uint64_t size) {
    uint64_t bytes = GET(region->slots[slot].bytes[gpu]);
    uint64_t used = GET(region->gpus[gpu].used);
    size = size < bytes ? size : bytes;
    PUT(region->gpus[gpu].used, used > size ? used - size : 0);
    STEP(AT_SLOT_DOWN);
    PUT(region->slots[slot].bytes[gpu], bytes - size);
}

static uint64_t held(const struct region_slot *slot) {
    uint64_t any = 0;
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        any |= GET(slot->bytes[gpu]);
    }
    return any;
}

/* Under the lock: empty a slot, and make it free. */
static void empty(struct region *region, uint32_t slot) {
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        uint64_t bytes = GET(region->slots[slot].bytes[gpu]);
        if (bytes) {
            uint64_t used = GET(region->gpus[gpu].used);
            STEP(AT_REAP_USED);
            PUT(region->gpus[gpu].used, used > bytes ? used - bytes : 0);
            STEP(AT_REAP_SLOT);
            PUT(region->slots[slot].bytes[gpu], 0);
        }
    }
    PUT(region->slots[slot].start, 0);
    PUT(region->slots[slot].pid_namespace, 0);
    PUT(region->slots[slot].identity, 0);
}

/* Under the lock: empty the first slot with bytes of a dead process; 0 where there is none. */
static int reap(struct account *account) {
    for (uint32_t index = 0; index < REGION_SLOTS; index++) {
        struct region_slot *slot = &account->region->slots[index];
        if (index != account->slot && GET(slot->identity) != 0 &&
            held(slot) && region_judge(account, slot)) {
            empty(account->region, index);
            return 1;
        }
    }
    return 0;
}

/* Under the lock. */
static void pay(struct account *account) {
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        if (__atomic_load_n(&account->owed[gpu], __ATOMIC_RELAXED)) {
            uint64_t size = __atomic_exchange_n(&account->owed[gpu], 0, __ATOMIC_ACQ_REL);
            lower(account->region, account->slot, gpu, size);
        }
    }
}

int region_enter(struct account *account) {
    struct region *region = account->region;
    uint32_t gone = REGION_SLOTS;
    account->slot = REGION_SLOTS;
    account->judged = 0;
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        account->owed[gpu] = 0;
    }
    for (int again = 0; again < 2 && account->slot == REGION_SLOTS; again++) {
        for (uint32_t index = 0; index < REGION_SLOTS; index++) {
            uint64_t none = 0;
            uint64_t seen = GET(region->slots[index].identity);
            if (seen == account->identity &&
                GET(region->slots[index].pid_namespace) == account->pid_namespace) {
                gone = index; /* of the program that this process was before exec */
            } else if (seen == 0 && account->slot == REGION_SLOTS &&
                       __atomic_compare_exchange_n(&region->slots[index].identity, &none,
                                                   account->identity, 0, __ATOMIC_ACQ_REL,
                                                   __ATOMIC_RELAXED)) {
                account->slot = index;
                PUT(region->slots[index].start, account->start);
                PUT(region->slots[index].pid_namespace, account->pid_namespace);
            }
        }
        if (account->slot == REGION_SLOTS) {
            /* All are taken. Without a slot there is no lock: borrow the first dead one's. */
            for (uint32_t index = 0; index < REGION_SLOTS; index++) {
                struct region_slot *slot = &region->slots[index];
                uint64_t seen = GET(slot->identity);
                if (region_judge(account, slot) && !held(slot) &&
                    (GET(region->lock) & LOCK_OWNER) >> 1 != index + 1 &&
                    __atomic_compare_exchange_n(&slot->identity, &seen, account->identity, 0,
                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
                    account->slot = index;
                    PUT(slot->start, account->start);
                    break;
                }
            }
            break;
        }
    }
    if (account->slot == REGION_SLOTS) {
        return -1;
    }
    if (gone < REGION_SLOTS) {
        if (lock(account, region_reserve_wait)) {
            return -1;
        }
        empty(region, gone);
        unlock(account);
    }
    return 0;
}

void region_leave(struct account *account) {
    if (account->slot < REGION_SLOTS && is_mine(account) &&
        lock(account, region_release_wait) == 0) {
        pay(account);
        if (!held(&account->region->slots[account->slot])) {
            empty(account->region, account->slot);
        }
        unlock(account);
    }
}

/* A process is judged without the lock, because that reads a file, and again with it. */
static int empty_if_dead(struct account *account, uint32_t index) {
    struct region_slot *slot = &account->region->slots[index];
    if (index == account->slot || !region_judge(account, slot)) {
        return 0;
    }
    if (lock(account, region_release_wait)) {
        return -1;
    }
    if (GET(slot->identity) != 0 && region_judge(account, slot)) {
        empty(account->region, index);
    }
    unlock(account);
    return 0;
}

void region_reap(struct account *account) {
    uint32_t first = __atomic_load_n(&account->judged, __ATOMIC_RELAXED);
    uint32_t judged = 0;
    for (uint32_t at = 0; at < REGION_SLOTS && judged < REGION_JUDGED; at++) {
        uint32_t index = (first + at) % REGION_SLOTS;
        if (GET(account->region->slots[index].identity) != 0) {
            judged++;
            __atomic_store_n(&account->judged, index + 1, __ATOMIC_RELAXED);
            if (account->slot >= REGION_SLOTS || empty_if_dead(account, index)) {
                return;
            }
        }
    }
}

int region_reserve(struct account *account, uint32_t gpu, uint64_t size, uint64_t limit) {
    struct region *region = account->region;
    struct region_gpu *card = &region->gpus[gpu];
    if (account->slot >= REGION_SLOTS || lock(account, region_reserve_wait)) {
        __atomic_fetch_add(&card->denied, 1, __ATOMIC_RELAXED);
        return -1;
    }
    pay(account);
    uint64_t used;
    for (;;) {
        STEP(AT_CHECK);
        used = GET(card->used);
        if (is_mine(account) && used <= limit && size <= limit - used) {
            break;
        }
        if (!reap(account)) {
            __atomic_fetch_add(&card->denied, 1, __ATOMIC_RELAXED);
            unlock(account);
            return -1;
        }
    }
    uint64_t *mine = &region->slots[account->slot].bytes[gpu];
    STEP(AT_SLOT_UP);
    PUT(*mine, GET(*mine) + size);
    STEP(AT_USED_UP);
    PUT(card->used, used + size);
    if (used + size > GET(card->peak)) {
        PUT(card->peak, used + size);
    }
    unlock(account);
    return 0;
}

void region_release(struct account *account, uint32_t gpu, uint64_t size) {
    if (size == 0 || account->slot >= REGION_SLOTS) {
        return;
    }
    if (lock(account, region_release_wait)) {
        __atomic_fetch_add(&account->owed[gpu], size, __ATOMIC_RELAXED);
        return;
    }
    if (is_mine(account)) {
        STEP(AT_USED_DOWN);
        lower(account->region, account->slot, gpu, size);
        pay(account);
    }
    unlock(account);
}

void region_unknown(struct account *account, uint32_t gpus) {
    for (uint32_t gpu = 0; gpu < gpus && gpu < REGION_GPUS; gpu++) {
        __atomic_fetch_add(&account->region->gpus[gpu].unknown_allocators, 1, __ATOMIC_RELAXED);
    }
}

int64_t region_spend(struct account *account, uint32_t gpu, int64_t cost, int64_t now) {
    int64_t *paid = &account->region->paid[gpu];
    int64_t seen = GET(*paid);
    for (;;) {
        int64_t from = seen > now + REGION_MOST_DEBT ? now
                       : seen < now - REGION_WINDOW  ? now - REGION_WINDOW
                                                     : seen;
        int64_t until = cost > REGION_MOST_DEBT    ? from + REGION_MOST_DEBT
                        : cost < -REGION_MOST_DEBT ? from - REGION_MOST_DEBT
                                                   : from + cost;
        until = until > now + REGION_MOST_DEBT ? now + REGION_MOST_DEBT : until;
        if (cost == 0 || __atomic_compare_exchange_n(paid, &seen, until, 0, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_ACQUIRE)) {
            return until;
        }
    }
}
