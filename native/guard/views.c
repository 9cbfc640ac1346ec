/* What programs see of the GPU's memory: their grant. NULL goes to the driver. */
#include "charge.h"

static CUresult shown(CUresult code, uint64_t *free, uint64_t *total) {
    struct place place;
    if (code != CUDA_SUCCESS || here(&place) != CUDA_SUCCESS) {
        return code;
    }
    uint64_t limit = guard_limit(place.gpu);
    if (place.gpu >= 0) {
        settle_pools(place.gpu, 0);
    }
    uint64_t used = guard_used(place.gpu);
    uint64_t left = used < limit ? limit - used : 0;
    *free = *free < left ? *free : left;
    *total = *total < limit ? *total : limit;
    return code;
}

CUresult on_memory(CUresult (*real)(size_t *, size_t *), size_t *free, size_t *total) {
    uint64_t some, all;
    CUresult code = real(free, total);
    if (code == CUDA_SUCCESS && free && total) {
        some = *free, all = *total;
        code = shown(code, &some, &all);
        *free = some, *total = all;
    }
    return code;
}

CUresult on_memory_v1(CUresult (*real)(unsigned int *, unsigned int *), unsigned int *free,
                      unsigned int *total) {
    uint64_t some, all;
    CUresult code = real(free, total);
    if (code == CUDA_SUCCESS && free && total) {
        some = *free, all = *total;
        code = shown(code, &some, &all);
        *free = (unsigned int)some, *total = (unsigned int)all;
    }
    return code;
}

CUresult on_total(CUresult (*real)(size_t *, CUdevice), size_t *bytes, CUdevice device) {
    CUresult code = real(bytes, device);
    if (code == CUDA_SUCCESS && bytes) {
        uint64_t limit = guard_limit(gpu_of(device));
        *bytes = *bytes < limit ? *bytes : limit;
    }
    return code;
}

CUresult on_total_v1(CUresult (*real)(unsigned int *, CUdevice), unsigned int *bytes,
                     CUdevice device) {
    CUresult code = real(bytes, device);
    if (code == CUDA_SUCCESS && bytes) {
        uint64_t limit = guard_limit(gpu_of(device));
        *bytes = *bytes < limit ? *bytes : (unsigned int)limit;
    }
    return code;
}
