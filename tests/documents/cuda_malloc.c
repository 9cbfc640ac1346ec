/* The program of document 001's images, for a real kubelet without a GPU.
 *
 * `cuda-malloc MIB` takes a context and MIB of GPU memory, and holds them until it is ended. Without
 * memory it prints the document's line and exits with status 1.
 * `cuda-malloc` prints the memory that a query in the container shows, in nvidia-smi's columns.
 *
 * CONTEXT_MIB, NO_MEMORY and NO_MEMORY_STATUS come from fairlead_sim/kubelet/cuda_malloc.py. A
 * context of the stub takes nothing, so the program allocates what a real one takes.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

#define MIB ((size_t)1 << 20)

static void *library(const char *name) {
    void *found = dlopen(name, RTLD_NOW);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return found;
}

static void check(CUresult code) {
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        puts(NO_MEMORY);
        exit(NO_MEMORY_STATUS);
    }
    if (code) {
        fprintf(stderr, "CUDA error %d\n", code);
        exit(3);
    }
}

static void hold(size_t mib) {
    void *cuda = library("libcuda.so.1");
    CUcontext context;
    CUdeviceptr taken;
    CUresult (*init)(unsigned int) = dlsym(cuda, "cuInit");
    CUresult (*retain)(CUcontext *, CUdevice) = dlsym(cuda, "cuDevicePrimaryCtxRetain");
    CUresult (*current)(CUcontext) = dlsym(cuda, "cuCtxSetCurrent");
    CUresult (*allocate)(CUdeviceptr *, size_t) = dlsym(cuda, "cuMemAlloc_v2");
    check(init(0));
    check(retain(&context, 0));
    check(current(context));
    check(allocate(&taken, CONTEXT_MIB * MIB));
    check(allocate(&taken, mib * MIB));
    puts("allocated");
    signal(SIGTERM, _exit); /* the first process of a container has no default action */
    for (;;) {
        pause();
    }
}

static int show(void) {
    void *nvml = library("libnvidia-ml.so.1"), *device;
    unsigned long long memory[3]; /* total, free, used */
    int (*init)(void) = dlsym(nvml, "nvmlInit_v2");
    int (*first)(unsigned int, void **) = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    int (*ask)(void *, unsigned long long *) = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    if (init() || first(0, &device) || ask(device, memory)) {
        fputs("NVML does not answer\n", stderr);
        return 3;
    }
    printf("%5lluMiB / %5lluMiB\n", memory[2] / MIB, memory[0] / MIB);
    return 0;
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 2) {
        hold(strtoul(words[1], NULL, 10));
    }
    return show();
}
