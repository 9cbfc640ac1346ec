/* The ground truth: see truth.h. */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct truth) <= TRUTH_BYTES, "the truth fits its file");

static struct truth *truth;
static int file = -1;
static int slot = -1;
static pid_t owner;
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t knob(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

int knob_gpus(void) { return (int)knob("FAIRLEAD_STUB_GPUS", 2); }
uint64_t knob_memory(void) { return knob("FAIRLEAD_STUB_MEMORY", 16130ull << 20); }

void knob_delay(void) {
    static int64_t delay = -1;
    if (delay < 0) {
        delay = (int64_t)knob("FAIRLEAD_STUB_DELAY_US", 0);
    }
    if (delay > 0) {
        usleep((useconds_t)(rand() % (delay + 1)));
    }
}

void stub_uuid(int gpu, unsigned char bytes[16]) {
    memset(bytes, 0, 16);
    bytes[3] = (unsigned char)gpu;
    bytes[15] = 0xf1;
}

static int record(int command, int index) {
    struct flock range = {0};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = index;
    range.l_len = 1;
    int answer = fcntl(file, command, &range);
    return command == F_GETLK ? range.l_type != F_UNLCK : answer;
}

static void lock(void) {
    if (pthread_mutex_lock(&truth->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&truth->lock);
    }
}

/* Under the lock. */
static void bury(void) {
    for (int gpu = 0; gpu < TRUTH_GPUS; gpu++) {
        truth->gpus[gpu].used = 0;
    }
    for (int index = 0; index < TRUTH_SLOTS; index++) {
        struct truth_slot *each = &truth->slots[index];
        if (each->pid && index != slot && !record(F_GETLK, index)) {
            memset(each, 0, sizeof *each);
        }
        for (int gpu = 0; gpu < TRUTH_GPUS; gpu++) {
            truth->gpus[gpu].used += each->bytes[gpu];
        }
    }
}

static void begin(void) {
    pthread_mutex_lock(&begin_lock);
    if (truth && owner == getpid()) {
        pthread_mutex_unlock(&begin_lock);
        return;
    }
    const char *path = getenv("FAIRLEAD_STUB_TRUTH");
    if (!truth) {
        file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *at = mmap(NULL, TRUTH_BYTES, PROT_READ | PROT_WRITE,
                        file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
        if (at == MAP_FAILED) {
            abort();
        }
        truth = at;
        uint32_t fresh = 0;
        if (__atomic_compare_exchange_n(&truth->is_ready, &fresh, 1, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            pthread_mutexattr_t robust;
            pthread_mutexattr_init(&robust);
            pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
            pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
            pthread_mutex_init(&truth->lock, &robust);
            __atomic_store_n(&truth->is_ready, 2, __ATOMIC_SEQ_CST);
        }
        while (__atomic_load_n(&truth->is_ready, __ATOMIC_SEQ_CST) != 2) {
            usleep(100);
        }
    }
    owner = getpid();
    slot = -1;
    lock();
    for (int index = 0; slot < 0 && index < TRUTH_SLOTS; index++) {
        if (truth->slots[index].pid && file >= 0 && !record(F_GETLK, index)) {
            memset(&truth->slots[index], 0, sizeof truth->slots[index]);
        }
        if (!truth->slots[index].pid && (file < 0 || record(F_SETLK, index) == 0)) {
            truth->slots[index].pid = (uint64_t)owner;
            slot = index;
        }
    }
    pthread_mutex_unlock(&truth->lock);
    pthread_mutex_unlock(&begin_lock);
    if (slot < 0) {
        abort();
    }
}

int truth_add(int gpu, uint64_t bytes) {
    begin();
    lock();
    struct truth_gpu *of = &truth->gpus[gpu];
    uint64_t memory = knob_memory();
    if (file >= 0 && (of->used + bytes > of->peak || of->used + bytes > memory)) {
        bury();
    }
    int fits = bytes <= memory && of->used <= memory - bytes;
    if (fits) {
        of->used += bytes;
        truth->slots[slot].bytes[gpu] += bytes;
        of->peak = of->used > of->peak ? of->used : of->peak;
    }
    pthread_mutex_unlock(&truth->lock);
    return fits ? 0 : -1;
}

void truth_sub(int gpu, uint64_t bytes) {
    begin();
    lock();
    truth->gpus[gpu].used -= bytes;
    truth->slots[slot].bytes[gpu] -= bytes;
    pthread_mutex_unlock(&truth->lock);
}

uint64_t truth_used(int gpu) {
    begin();
    lock();
    if (file >= 0) {
        bury();
    }
    uint64_t used = truth->gpus[gpu].used;
    pthread_mutex_unlock(&truth->lock);
    return used;
}

void truth_work(int gpu, uint64_t nanoseconds) {
    begin();
    __atomic_fetch_add(&truth->busy[gpu], nanoseconds, __ATOMIC_RELAXED);
}
