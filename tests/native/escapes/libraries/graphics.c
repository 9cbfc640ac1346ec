/* A library of graphics: it takes memory of the driver without CUDA. */
#include "truth.h"

__attribute__((visibility("default"))) int vkAllocateMemory(uint64_t bytes) {
    return truth_add(0, bytes);
}
