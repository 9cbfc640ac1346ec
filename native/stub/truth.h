/* The ground truth of the stub: what its driver gave to living processes, in a file of its own.
 *
 * FAIRLEAD_STUB_TRUTH names the file, zeros of TRUTH_BYTES. A process's memory goes with it: it
 * holds a record lock on its slot, which the kernel drops when the process ends or calls exec.
 */
#ifndef FAIRLEAD_TRUTH_H
#define FAIRLEAD_TRUTH_H

#include <pthread.h>
#include <stdint.h>

#define TRUTH_GPUS 8
#define TRUTH_SLOTS 256
#define TRUTH_BYTES 65536

struct truth_gpu {
    uint64_t used;
    uint64_t peak;
};

struct truth_slot {
    uint64_t pid; /* 0: free */
    uint64_t bytes[TRUTH_GPUS];
};

/* `busy`: of each GPU, nanoseconds that kernels of all processes take. */
struct truth {
    struct truth_gpu gpus[TRUTH_GPUS];
    uint32_t is_ready;
    uint32_t unused;
    pthread_mutex_t lock;
    struct truth_slot slots[TRUTH_SLOTS];
    uint64_t busy[TRUTH_GPUS];
};

/* 0; -1 where the GPU's physical memory does not have it. */
int truth_add(int gpu, uint64_t bytes);
void truth_sub(int gpu, uint64_t bytes);
uint64_t truth_used(int gpu);
void truth_work(int gpu, uint64_t nanoseconds);

int knob_gpus(void);
uint64_t knob_memory(void);
uint64_t knob(const char *name, uint64_t otherwise);
void knob_delay(void);
void stub_uuid(int gpu, unsigned char bytes[16]);

#endif
