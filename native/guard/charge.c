/* Where a call of CUDA allocates, and its charge: see charge.h. */
#include "charge.h"

struct table pointers, arrays;

#define MOST_DEVICES 64
static int device_gpu[MOST_DEVICES]; /* index + 2; 0: not asked yet */

void cuda_forget(void) {
    table_forget(&pointers), table_forget(&arrays);
    handles_forget(), imports_forget(), pools_forget();
    graphs_forget(), contexts_forget(), throttle_forget();
}

int gpu_of(CUdevice device) {
    if (device < 0 || device >= MOST_DEVICES) {
        return NO_DEVICE;
    }
    int known = __atomic_load_n(&device_gpu[device], __ATOMIC_ACQUIRE);
    if (known) {
        return known - 2;
    }
    CUuuid uuid;
    CUresult (*ask)(CUuuid *, CUdevice) = CALL(cuDeviceGetUuid_v2, (CUuuid *, CUdevice));
    if (!ask) {
        ask = CALL(cuDeviceGetUuid, (CUuuid *, CUdevice));
    }
    CUresult code = ask ? ask(&uuid, device) : CUDA_ERROR_NOT_FOUND;
    if (code != CUDA_SUCCESS) {
        return code == CUDA_ERROR_INVALID_DEVICE ? NO_DEVICE : UNLISTED;
    }
    char text[48] = "GPU-";
    char *at = text + 4;
    for (int byte = 0; byte < 16; byte++) {
        static const char digits[] = "0123456789abcdef";
        if (byte == 4 || byte == 6 || byte == 8 || byte == 10) {
            *at++ = '-';
        }
        *at++ = digits[uuid.bytes[byte] >> 4];
        *at++ = digits[uuid.bytes[byte] & 15];
    }
    int gpu = guard_gpu(text);
    __atomic_store_n(&device_gpu[device], gpu + 2, __ATOMIC_RELEASE);
    return gpu;
}

CUdevice device_of(int gpu) {
    for (CUdevice device = 0; device < MOST_DEVICES; device++) {
        if (__atomic_load_n(&device_gpu[device], __ATOMIC_ACQUIRE) == gpu + 2) {
            return device;
        }
    }
    return -1;
}

CUresult here(struct place *place) {
    *place = (struct place){NULL, -1, -1};
    CUresult (*context)(CUcontext *) = CALL(cuCtxGetCurrent, (CUcontext *));
    CUresult (*device)(CUdevice *) = CALL(cuCtxGetDevice, (CUdevice *));
    if (!context || !device) {
        return NO_MEMORY;
    }
    CUresult code = context(&place->context);
    if (code == CUDA_SUCCESS) {
        code = device(&place->device);
    }
    if (code == CUDA_SUCCESS) {
        place->gpu = gpu_of(place->device);
    }
    return code;
}

int charge(int gpu, uint64_t size) {
    if (guard_reserve(gpu, size) == 0) {
        return 0;
    }
    return gpu >= 0 && settle_pools(gpu, 1) ? guard_reserve(gpu, size) : -1;
}

int keep(struct table *table, CUresult code, uint64_t key, const struct place *place,
         uint64_t size) {
    struct entry entry = {key, size, (uint64_t)place->context, 0, place->gpu, 1};
    int is_made = code == CUDA_SUCCESS && key != 0;
    if (is_made && table_put(table, &entry) == 0) {
        return 0;
    }
    if (is_made && !guard_is_view()) {
        return -1;
    }
    guard_release(place->gpu, size); /* a view does not count what it cannot keep */
    return 0;
}
