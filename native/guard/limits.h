/* The limits file: docs/spec/gpu-sharing.md#limits-file-and-region. */
#ifndef FAIRLEAD_LIMITS_H
#define FAIRLEAD_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "region.h"

#define LIMITS_MOST_BYTES 65536u
#define LIMITS_UUID_BYTES 64u
#define LIMITS_PATH_BYTES 256u

struct gpu_limit {
    char uuid[LIMITS_UUID_BYTES];
    uint64_t bytes;
    uint64_t core_percent;
    uint64_t context_bytes;
};

/* `is_view`: another provider limits; the guard counts and shows, and refuses nothing. */
struct limits {
    uint32_t count;
    uint32_t is_view;
    struct gpu_limit gpus[REGION_GPUS];
    char region[LIMITS_PATH_BYTES];
};

/* 0, or the number of the first line that is not understood (a missing line has a number, too). */
uint32_t limits_parse(const char *text, size_t size, struct limits *into);

/* 0; 1 where there is no such file; -1 where it cannot be read or understood. */
int limits_read(const char *path, struct limits *into);

#endif
