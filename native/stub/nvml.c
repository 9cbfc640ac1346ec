/* A stub of NVML over the same ground truth as cuda.c. It shows a process of another container. */
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "truth.h"

#define SHOWN __attribute__((visibility("default")))
#define INVALID_ARGUMENT 2
#define INSUFFICIENT_SIZE 7
#define FOREIGN_PID 4242u

static int index_of(nvmlDevice_t device) { return (int)(uintptr_t)device - 1; }

SHOWN nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
SHOWN nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { return (void)flags, NVML_SUCCESS; }
SHOWN nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
SHOWN nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    return *count = (unsigned int)knob_gpus(), NVML_SUCCESS;
}
SHOWN nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    *device = (nvmlDevice_t)(uintptr_t)(index + 1);
    return index < (unsigned int)knob_gpus() ? NVML_SUCCESS : INVALID_ARGUMENT;
}
SHOWN nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int size) {
    unsigned char b[16];
    stub_uuid(index_of(device), b);
    snprintf(uuid, size,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return NVML_SUCCESS;
}
nvmlReturn_t stub_nvml_memory(nvmlDevice_t device, nvmlMemory_t *memory) {
    if (!memory) {
        return INVALID_ARGUMENT;
    }
    memory->total = knob_memory();
    memory->used = truth_used(index_of(device));
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}
nvmlReturn_t stub_nvml_memory_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    nvmlMemory_t plain;
    if (!memory) {
        return INVALID_ARGUMENT;
    }
    stub_nvml_memory(device, &plain);
    memory->total = plain.total;
    memory->used = plain.used;
    memory->reserved = 100 << 20;
    memory->free = plain.free;
    return NVML_SUCCESS;
}

/* FAIRLEAD_STUB_HARD_LIMIT: what a cgroup is limited to; without it no limit is set. */
nvmlReturn_t stub_nvml_limits(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits) {
    uint64_t hard = knob("FAIRLEAD_STUB_HARD_LIMIT", 0);
    if (!limits) {
        return INVALID_ARGUMENT;
    }
    if (hard == 0) {
        return NVML_ERROR_NOT_FOUND;
    }
    limits->softLimit = 1 << 20;
    limits->hardLimit = hard;
    limits->currentUsed = truth_used(index_of(device));
    return NVML_SUCCESS;
}

/* One foreign process, where the caller has room. */
static nvmlReturn_t foreign(unsigned int *count, unsigned int *first) {
    if (!count) {
        return INVALID_ARGUMENT;
    }
    unsigned int room = *count;
    *count = 1;
    if (room < 1 || !first) {
        return INSUFFICIENT_SIZE;
    }
    *first = FOREIGN_PID;
    return NVML_SUCCESS;
}
nvmlReturn_t stub_nvml_processes(nvmlDevice_t device, unsigned int *count, void *processes) {
    return (void)device, foreign(count, processes);
}
nvmlReturn_t stub_nvml_process_details(nvmlDevice_t device, nvmlProcessDetailList_t *list) {
    return (void)device, list ? foreign(&list->numProcArrayEntries, list->procArray)
                              : INVALID_ARGUMENT;
}
nvmlReturn_t stub_nvml_process_use(nvmlDevice_t device, void *samples, unsigned int *count,
                                   unsigned long long since) {
    return (void)device, (void)since, foreign(count, samples);
}
nvmlReturn_t stub_nvml_processes_use(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *list) {
    return (void)device, list ? foreign(&list->processSamplesCount, list->procUtilArray)
                              : INVALID_ARGUMENT;
}
nvmlReturn_t stub_nvml_accounting_pids(nvmlDevice_t device, unsigned int *count,
                                       unsigned int *pids) {
    return (void)device, foreign(count, pids);
}
nvmlReturn_t stub_nvml_accounting(nvmlDevice_t device, unsigned int pid, void *stats) {
    return (void)device, (void)stats, pid == FOREIGN_PID ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
