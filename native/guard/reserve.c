/* Linear memory: the driver's size is known, or settled to its pitch. */
#include "charge.h"

/* Linear memory: the size is known. `call` allocates into `*pointer`. */
#define LINEAR(call, pointer, bytes)                                                               \
    struct place place;                                                                            \
    if (!(pointer) || !(bytes)) {                                                                  \
        return (call);                                                                             \
    }                                                                                              \
    if (here(&place) != CUDA_SUCCESS) {                                                            \
        WITHOUT_CONTEXT(call, undo_pointer(*(pointer)));                                           \
    }                                                                                              \
    if (charge(place.gpu, (bytes))) {                                                              \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    if (keep(&pointers, code, code == CUDA_SUCCESS ? *(pointer) : 0, &place, (bytes))) {           \
        undo_pointer(*(pointer));                                                                  \
        guard_release(place.gpu, (bytes));                                                         \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    return code

CUresult on_linear(CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *pointer, size_t size) {
    LINEAR(real(pointer, size), pointer, size);
}

CUresult on_linear_v1(CUresult (*real)(CUdeviceptr_v1 *, unsigned int), CUdeviceptr_v1 *pointer,
                      unsigned int size) {
    LINEAR(real(pointer, size), pointer, size);
}

CUresult on_managed(CUresult (*real)(CUdeviceptr *, size_t, unsigned int), CUdeviceptr *pointer,
                    size_t size, unsigned int flags) {
    LINEAR(real(pointer, size, flags), pointer, size);
}

/* The driver chooses the pitch: reserve for rows of 4096 bytes, settle to the one it chose. */
#define PITCHED(call)                                                                              \
    struct place place;                                                                            \
    if (!pointer || !pitch || !width || !height) {                                                 \
        return (call);                                                                             \
    }                                                                                              \
    if (here(&place) != CUDA_SUCCESS) {                                                            \
        WITHOUT_CONTEXT(call, undo_pointer(*pointer));                                             \
    }                                                                                              \
    uint64_t bound = times(round_up(width, 4096), height);                                         \
    uint64_t least = times(round_up(width, 32), height);                                           \
    if (charge(place.gpu, bound)) {                                                                \
        /* Near the limit the driver's own pitch may still fit: try rows of 512. */                \
        bound = times(round_up(width, 512), height);                                               \
        if (bound < least || charge(place.gpu, bound)) {                                           \
            return NO_MEMORY;                                                                      \
        }                                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    uint64_t real_size = code == CUDA_SUCCESS ? times(*pitch, height) : bound;                     \
    if (real_size > bound && guard_reserve(place.gpu, real_size - bound)) {                        \
        undo_pointer(*pointer);                                                                    \
        guard_release(place.gpu, bound);                                                           \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    guard_release(place.gpu, real_size < bound ? bound - real_size : 0);                           \
    if (keep(&pointers, code, code == CUDA_SUCCESS ? *pointer : 0, &place, real_size)) {           \
        undo_pointer(*pointer);                                                                    \
        guard_release(place.gpu, real_size);                                                       \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    return code

CUresult on_pitch(CUresult (*real)(CUdeviceptr *, size_t *, size_t, size_t, unsigned int),
                  CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                  unsigned int element) {
    PITCHED(real(pointer, pitch, width, height, element));
}

CUresult on_pitch_v1(CUresult (*real)(CUdeviceptr_v1 *, unsigned int *, unsigned int, unsigned int,
                                      unsigned int),
                     CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                     unsigned int height, unsigned int element) {
    PITCHED(real(pointer, pitch, width, height, element));
}

CUresult on_free(CUresult (*real)(CUdeviceptr), CUdeviceptr pointer) {
    RELEASED(&pointers, pointer, real(pointer));
}

CUresult on_free_v1(CUresult (*real)(CUdeviceptr_v1), CUdeviceptr_v1 pointer) {
    RELEASED(&pointers, pointer, real(pointer));
}
