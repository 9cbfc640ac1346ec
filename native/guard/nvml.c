/* What each hooked function of NVML shows: the container's memory, and no processes.
 *
 * NVML is not asked to allocate anything; these are views.
 */
#include "driver.h"
#include "guard.h"

#define DEVICES 64
static nvmlDevice_t known_device[DEVICES];
static int known_gpu[DEVICES]; /* index + 2 */

/* The index in the limits file; -1 where the GPU is not listed. */
static int gpu_of(nvmlDevice_t device) {
    char uuid[96];
    for (int at = 0; at < DEVICES; at++) {
        if (__atomic_load_n(&known_device[at], __ATOMIC_ACQUIRE) == device &&
            __atomic_load_n(&known_gpu[at], __ATOMIC_ACQUIRE)) {
            return known_gpu[at] - 2;
        }
    }
    nvmlReturn_t (*ask)(nvmlDevice_t, char *, unsigned int) =
        (nvmlReturn_t(*)(nvmlDevice_t, char *, unsigned int))resolve_helper(
            HELPER_nvmlDeviceGetUUID);
    if (!ask || ask(device, uuid, sizeof uuid) != NVML_SUCCESS) {
        return -1;
    }
    int gpu = guard_gpu(uuid);
    for (int at = 0; at < DEVICES; at++) {
        nvmlDevice_t none = NULL;
        if (__atomic_compare_exchange_n(&known_device[at], &none, device, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&known_gpu[at], gpu + 2, __ATOMIC_RELEASE);
            break;
        }
    }
    return gpu;
}

static void show(nvmlDevice_t device, unsigned long long *total, unsigned long long *used,
                 unsigned long long *free) {
    int gpu = gpu_of(device);
    uint64_t limit = guard_limit(gpu), held = guard_used(gpu);
    *total = *total < limit ? *total : limit;
    *used = held < *total ? held : *total;
    *free = *total - *used;
}

nvmlReturn_t on_nvml_memory(nvmlReturn_t (*real)(nvmlDevice_t, nvmlMemory_t *),
                            nvmlDevice_t device, nvmlMemory_t *memory) {
    nvmlReturn_t code = real(device, memory);
    if (code == NVML_SUCCESS) {
        show(device, &memory->total, &memory->used, &memory->free);
    }
    return code;
}

nvmlReturn_t on_nvml_memory_v2(nvmlReturn_t (*real)(nvmlDevice_t, nvmlMemory_v2_t *),
                               nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    nvmlReturn_t code = real(device, memory);
    if (code == NVML_SUCCESS) {
        show(device, &memory->total, &memory->used, &memory->free);
        memory->reserved = 0;
    }
    return code;
}

/* What the driver limits, where it does, is at most the grant. Without a limit of its own it
 * answers that there is none; a container under the guard has one.
 */
nvmlReturn_t on_nvml_limits(nvmlReturn_t (*real)(nvmlDevice_t, nvmlGetMemoryLimits_v1_t *),
                            nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits) {
    nvmlReturn_t code = real(device, limits);
    if (!limits || (code != NVML_SUCCESS && code != NVML_ERROR_NOT_FOUND)) {
        return code;
    }
    int gpu = gpu_of(device);
    uint64_t limit = guard_limit(gpu), held = guard_used(gpu);
    int is_set = code == NVML_SUCCESS;
    limits->hardLimit = is_set && limits->hardLimit < limit ? limits->hardLimit : limit;
    limits->softLimit = is_set && limits->softLimit < limit ? limits->softLimit : limit;
    limits->currentUsed = held < limits->hardLimit ? held : limits->hardLimit;
    return NVML_SUCCESS;
}

/* The driver is asked with room for nothing, so that it still checks the device. */
static nvmlReturn_t nothing(nvmlReturn_t code) {
    enum { INSUFFICIENT_SIZE = 7 };
    return code == INSUFFICIENT_SIZE || code == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : code;
}

nvmlReturn_t on_nvml_processes(nvmlReturn_t (*real)(nvmlDevice_t, unsigned int *, void *),
                               nvmlDevice_t device, unsigned int *count, void *processes) {
    unsigned int none = 0;
    if (!count) {
        return real(device, count, processes);
    }
    nvmlReturn_t code = nothing(real(device, &none, NULL));
    if (code == NVML_SUCCESS) {
        *count = 0;
    }
    return code;
}

nvmlReturn_t on_nvml_process_details(nvmlReturn_t (*real)(nvmlDevice_t, nvmlProcessDetailList_t *),
                                     nvmlDevice_t device, nvmlProcessDetailList_t *list) {
    if (!list) {
        return real(device, list);
    }
    nvmlProcessDetailList_t none = {list->version, list->mode, 0, NULL};
    nvmlReturn_t code = nothing(real(device, &none));
    if (code == NVML_SUCCESS) {
        list->numProcArrayEntries = 0;
    }
    return code;
}

nvmlReturn_t on_nvml_process_use(nvmlReturn_t (*real)(nvmlDevice_t, void *, unsigned int *,
                                                      unsigned long long),
                                 nvmlDevice_t device, void *samples, unsigned int *count,
                                 unsigned long long since) {
    unsigned int none = 0;
    if (!count) {
        return real(device, samples, count, since);
    }
    nvmlReturn_t code = nothing(real(device, NULL, &none, since));
    if (code == NVML_SUCCESS) {
        *count = 0;
        code = samples ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
    }
    return code;
}

nvmlReturn_t on_nvml_processes_use(nvmlReturn_t (*real)(nvmlDevice_t,
                                                        nvmlProcessesUtilizationInfo_t *),
                                   nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *list) {
    if (!list) {
        return real(device, list);
    }
    nvmlProcessesUtilizationInfo_t none = {list->version, 0, list->lastSeenTimeStamp, NULL};
    nvmlReturn_t code = nothing(real(device, &none));
    if (code == NVML_SUCCESS) {
        list->processSamplesCount = 0;
    }
    return code;
}

nvmlReturn_t on_nvml_accounting_pids(nvmlReturn_t (*real)(nvmlDevice_t, unsigned int *,
                                                          unsigned int *),
                                     nvmlDevice_t device, unsigned int *count,
                                     unsigned int *pids) {
    unsigned int none = 0;
    if (!count) {
        return real(device, count, pids);
    }
    nvmlReturn_t code = nothing(real(device, &none, NULL));
    if (code == NVML_SUCCESS) {
        *count = 0;
    }
    return code;
}

nvmlReturn_t on_nvml_accounting(nvmlReturn_t (*real)(nvmlDevice_t, unsigned int, void *),
                                nvmlDevice_t device, unsigned int pid, void *stats) {
    nvmlReturn_t code = real(device, pid, stats);
    return code == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : code;
}
