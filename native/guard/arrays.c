/* Arrays: an upper bound is reserved, then settled to what the driver needs. */
#include "charge.h"

/* Bytes of one channel; 16 for the formats of compressed and video textures. */
static uint64_t bytes_of(int format) {
    switch (format) {
    case 0x01:
    case 0x08:
        return 1;
    case 0x02:
    case 0x09:
    case 0x10:
        return 2;
    case 0x03:
    case 0x0a:
    case 0x20:
        return 4;
    default:
        return 16;
    }
}

/* An upper bound: rows of whole 512 bytes, 8 rows, 64 KiB; all levels of a pyramid are at most
 * twice the first.
 */
static uint64_t array_bound(uint64_t width, uint64_t height, uint64_t depth, int format,
                            unsigned int channels, unsigned int levels) {
    uint64_t row = round_up(times(width, times(bytes_of(format), channels ? channels : 1)), 512);
    uint64_t rows = height > 1 ? round_up(height, 8) : 1;
    uint64_t one = round_up(times(times(row, rows), depth ? depth : 1), 65536);
    return levels > 1 ? times(one, 2) + 65536ull * (levels < 64 ? levels : 64) : one;
}

static uint64_t required(int is_mipmapped, void *array, CUdevice device, uint64_t bound) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUresult (*ask)(CUDA_ARRAY_MEMORY_REQUIREMENTS *, void *, CUdevice) =
        is_mipmapped ? CALL(cuMipmappedArrayGetMemoryRequirements,
                            (CUDA_ARRAY_MEMORY_REQUIREMENTS *, void *, CUdevice))
                     : CALL(cuArrayGetMemoryRequirements,
                            (CUDA_ARRAY_MEMORY_REQUIREMENTS *, void *, CUdevice));
    return ask && ask(&needs, array, device) == CUDA_SUCCESS ? needs.size : bound;
}

/* After the driver made the array: settle to what it needs. */
static CUresult keep_array(CUresult code, void *array, const struct place *place, uint64_t bound,
                           int is_mipmapped) {
    uint64_t size = bound;
    if (code == CUDA_SUCCESS) {
        size = required(is_mipmapped, array, place->device, bound);
        if (size > bound && guard_reserve(place->gpu, size - bound)) {
            undo_array(array, is_mipmapped);
            guard_release(place->gpu, bound);
            return NO_MEMORY;
        }
        guard_release(place->gpu, size < bound ? bound - size : 0);
    }
    if (keep(&arrays, code, (uint64_t)array, place, size)) {
        undo_array(array, is_mipmapped);
        guard_release(place->gpu, size);
        return NO_MEMORY;
    }
    return code;
}

#define ARRAY(call, array, bound_of, mipmapped)                                                    \
    struct place place;                                                                            \
    if (here(&place) != CUDA_SUCCESS) {                                                            \
        WITHOUT_CONTEXT(call, undo_array(*(array), mipmapped));                                    \
    }                                                                                              \
    uint64_t bound = (bound_of);                                                                   \
    if (charge(place.gpu, bound)) {                                                                \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    return keep_array(code, code == CUDA_SUCCESS ? (void *)*(array) : NULL, &place, bound,         \
                      mipmapped)

CUresult on_array(CUresult (*real)(CUarray *, const CUDA_ARRAY_DESCRIPTOR *), CUarray *array,
                  const CUDA_ARRAY_DESCRIPTOR *shape) {
    if (!array || !shape) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 1), 0);
}

CUresult on_array_v1(CUresult (*real)(CUarray *, const CUDA_ARRAY_DESCRIPTOR_v1 *), CUarray *array,
                     const CUDA_ARRAY_DESCRIPTOR_v1 *shape) {
    if (!array || !shape) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 1), 0);
}

static int is_unmapped(unsigned int flags) {
    return (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

CUresult on_array_3d(CUresult (*real)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *), CUarray *array,
                     const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    if (!array || !shape || is_unmapped(shape->Flags)) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels,
                      1),
          0);
}

CUresult on_array_3d_v1(CUresult (*real)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR_v1 *),
                        CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape) {
    if (!array || !shape || is_unmapped(shape->Flags)) {
        return real(array, shape);
    }
    ARRAY(real(array, shape), array,
          array_bound(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels,
                      1),
          0);
}

CUresult on_mipmapped(CUresult (*real)(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *,
                                       unsigned int),
                      CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                      unsigned int levels) {
    if (!array || !shape || is_unmapped(shape->Flags)) {
        return real(array, shape, levels);
    }
    ARRAY(real(array, shape, levels), array,
          array_bound(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels,
                      levels),
          1);
}

CUresult on_array_destroy(CUresult (*real)(CUarray), CUarray array) {
    RELEASED(&arrays, array, real(array));
}

CUresult on_mipmapped_destroy(CUresult (*real)(CUmipmappedArray), CUmipmappedArray array) {
    RELEASED(&arrays, array, real(array));
}
