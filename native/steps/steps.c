/* Steps the guard's account store by store, with several processes in one: for tests.
 *
 * Each process is a coroutine that stops before each store (`region_step`). A state can be kept and
 * taken up again, so that a test tries every next step of it. The account is that of
 * native/guard/region.c, built with GUARD_STEPS.
 */
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "limits.h"
#include "region.h"
#include "sys.h"

#define SHOWN __attribute__((visibility("default")))
#define MOST 8
#define STACK 65536
#define LIVE 4096  /* of a stack, while its process stops before a store */
#define FRAME 512  /* below region_step's frame: what swapcontext keeps there */
#define DEEPEST 512

enum { IDLE = 0, DRIVER = 9, DEAD = 12, ABSENT = 13 };
enum { GO = 0, DIE, RESERVE, FAIL, FREE, FORK };

struct process {
    ucontext_t context;
    struct account account;
    int at;
    int is_releasing;
    int fails;
    int granted;
    uint64_t size;
    uint64_t truth;
    char *stack;
    size_t live;
};

static struct process processes[MOST];
static struct region *region;
static ucontext_t scheduler;
static struct process *current;
static uint64_t limit;

/* The region up to the last slot that is used, the processes, and the ends of their stacks. */
#define SHARED (offsetof(struct region, slots) + MOST * sizeof(struct region_slot))
struct state {
    char shared[SHARED];
    struct process processes[MOST];
    char stacks[MOST][LIVE];
};
static struct state *states;

void region_step(int at) {
    if (current) {
        char *low = (char *)__builtin_frame_address(0) - FRAME;
        current->at = at;
        current->live = (size_t)(current->stack + STACK - low);
        if (current->live > LIVE) {
            abort();
        }
        swapcontext(&current->context, &scheduler);
    }
}

static int judge(const struct account *account, const struct region_slot *slot) {
    (void)account;
    return processes[slot - region->slots].at == DEAD;
}

static void operation(void) {
    struct process *mine = current;
    if (mine->is_releasing) {
        region_release(&mine->account, 0, mine->size);
        mine->at = IDLE;
    } else {
        mine->granted = region_reserve(&mine->account, 0, mine->size, limit) == 0;
        mine->at = mine->granted ? DRIVER : IDLE;
    }
    mine->live = 0;
    setcontext(&scheduler);
}

static void resume(struct process *process) {
    current = process;
    swapcontext(&scheduler, &process->context);
    current = NULL;
}

static void begin(struct process *process, int is_releasing) {
    process->is_releasing = is_releasing;
    getcontext(&process->context);
    process->context.uc_stack.ss_sp = process->stack;
    process->context.uc_stack.ss_size = STACK;
    process->context.uc_link = NULL;
    makecontext(&process->context, operation, 0);
    resume(process);
}

static void act(struct process *process, int what, uint64_t size) {
    switch (what) {
    case DIE:
        process->at = DEAD;
        process->truth = 0;
        break;
    case RESERVE:
    case FAIL:
        process->size = size;
        process->fails = what == FAIL;
        begin(process, 0);
        break;
    case FREE:
        process->size = size;
        process->truth = 0;
        begin(process, 1);
        break;
    case FORK:
        processes[size].at = IDLE;
        break;
    default:
        if (process->at != DRIVER) {
            resume(process);
        } else if (process->fails) {
            begin(process, 1);
        } else {
            process->truth += process->size;
            process->at = IDLE;
        }
    }
}

static void keep(struct state *into, uint32_t count) {
    memcpy(into->shared, region, SHARED);
    memcpy(into->processes, processes, count * sizeof *processes);
    for (uint32_t index = 0; index < count; index++) {
        const struct process *process = &processes[index];
        memcpy(into->stacks[index], process->stack + STACK - process->live, process->live);
    }
}

static void take_up(const struct state *from, uint32_t count) {
    memcpy(region, from->shared, SHARED);
    memcpy(processes, from->processes, count * sizeof *processes);
    for (uint32_t index = 0; index < count; index++) {
        const struct process *process = &processes[index];
        memcpy(process->stack + STACK - process->live, from->stacks[index], process->live);
    }
}

/* Make `count` processes, the last `absent` of them before their fork: state 0. */
SHOWN void steps_start(uint64_t bytes, uint32_t count, uint32_t absent) {
    if (!region) {
        region = sys_map(REGION_BYTES, -1);
        states = sys_map(DEEPEST * sizeof *states, -1);
        for (uint32_t index = 0; index < MOST; index++) {
            processes[index].stack = malloc(STACK);
        }
    }
    limit = bytes;
    current = NULL;
    region_judge = judge;
    region_reserve_wait = region_release_wait = 0;
    memset(region, 0, SHARED);
    for (uint32_t index = 0; index < count; index++) {
        struct process *process = &processes[index];
        char *stack = process->stack;
        memset(process, 0, sizeof *process);
        process->stack = stack;
        process->at = index < count - absent ? IDLE : ABSENT;
        process->account.region = region;
        process->account.identity = index + 1;
        process->account.pid_namespace = 1;
        region_enter(&process->account);
    }
    keep(&states[0], count);
}

/* What one step makes of state `from`; it becomes the next state. `words`: owner + 1, used, denied,
 * then slot, truth and place of each process. -1 where there are too many states.
 */
SHOWN int steps_next(uint32_t from, uint32_t process, int what, uint64_t size, uint32_t count,
                     uint64_t *words) {
    if (from + 1 >= DEEPEST) {
        return -1;
    }
    take_up(&states[from], count);
    act(&processes[process], what, size);
    keep(&states[from + 1], count);
    words[0] = (region->lock & 0xffe) >> 1;
    words[1] = region->gpus[0].used;
    words[2] = region->gpus[0].denied;
    for (uint32_t index = 0; index < count; index++) {
        words[3 + 3 * index] = region->slots[index].bytes[0];
        words[4 + 3 * index] = processes[index].truth;
        words[5 + 3 * index] = (uint64_t)processes[index].at;
    }
    return 0;
}

/* Whole operations, four numbers each: process, what, GPU, size. What: 0 reserve, 1 release,
 * 2 the process dies and another one enters in its place. `words`, four for each: granted, used,
 * peak, the slot.
 */
SHOWN void steps_trace(const uint64_t *operations, uint64_t count, uint64_t *words) {
    for (uint64_t at = 0; at < count; at++, operations += 4, words += 4) {
        struct process *process = &processes[operations[0]];
        uint32_t gpu = (uint32_t)operations[2];
        words[0] = 1;
        if (operations[1] == 0) {
            words[0] = region_reserve(&process->account, gpu, operations[3], limit) == 0;
        } else if (operations[1] == 1) {
            region_release(&process->account, gpu, operations[3]);
        } else {
            words[0] = region_enter(&process->account) == 0;
        }
        words[1] = region->gpus[gpu].used;
        words[2] = region->gpus[gpu].peak;
        words[3] = region->slots[process->account.slot].bytes[gpu];
    }
}

SHOWN int steps_is_region(const void *bytes, size_t size) { return region_check(bytes, size) == 0; }

/* Write through the members of the region: word `at` of each part is `seed + at`. */
SHOWN void steps_fill(struct region *into, uint64_t seed) {
    into->magic = REGION_MAGIC;
    into->version = REGION_VERSION;
    into->generation = seed;
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        into->gpus[gpu].used = seed + 4 * gpu;
        into->gpus[gpu].peak = seed + 4 * gpu + 1;
        into->gpus[gpu].denied = seed + 4 * gpu + 2;
        into->gpus[gpu].unknown_allocators = seed + 4 * gpu + 3;
    }
    for (uint32_t index = 0; index < REGION_SLOTS; index++) {
        uint64_t first = seed + 35 * (uint64_t)index;
        into->slots[index].identity = first;
        into->slots[index].start = first + 1;
        into->slots[index].pid_namespace = first + 2;
        for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
            into->slots[index].bytes[gpu] = first + 3 + gpu;
        }
    }
}

/* Layout, in bytes and counts: tests/native/test_layout.py has their names. */
SHOWN void steps_layout(uint64_t *words) {
    const uint64_t all[] = {
        REGION_MAGIC,
        REGION_VERSION,
        REGION_GPUS,
        REGION_SLOTS,
        REGION_BYTES,
        offsetof(struct region, lock),
        offsetof(struct region, gpus),
        offsetof(struct region, slots),
        sizeof(struct region_gpu),
        sizeof(struct region_slot),
        sizeof(struct region),
    };
    memcpy(words, all, sizeof all);
}

/* Limits of a text: the number of GPUs, or -1. `words`: bytes, percent and context of each, and
 * after those of 32 GPUs whether the guard only shows.
 */
SHOWN int steps_limits(const char *text, size_t size, uint64_t *words) {
    struct limits into;
    if (size >= LIMITS_MOST_BYTES || limits_parse(text, size, &into)) {
        return -1;
    }
    for (uint32_t gpu = 0; gpu < into.count; gpu++) {
        words[3 * gpu] = into.gpus[gpu].bytes;
        words[3 * gpu + 1] = into.gpus[gpu].core_percent;
        words[3 * gpu + 2] = into.gpus[gpu].context_bytes;
    }
    words[3 * REGION_GPUS] = into.is_view;
    return (int)into.count;
}
