/* `tenant WAY audit SIZE`: what the guard counts after each step of every row, also where the
 * driver refuses one or takes more than it was asked for.
 *
 * Prints `ROW STEP code C used U truth T`: both in bytes, beyond what was there at the start.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenant.h"

#define USED_AT 64 /* of GPU 0, in the region */

static int region, truth;
static int64_t used_first, truth_first;

static int64_t word_of(int file, off_t at) {
    int64_t word = 0;
    return pread(file, &word, sizeof word, at) == sizeof word ? word : -1;
}

static void line(const char *row, const char *step, int code) {
    printf("%s %s code %d used %lld truth %lld\n", row, step, code,
           (long long)(word_of(region, USED_AT) - used_first),
           (long long)(word_of(truth, 0) - truth_first));
}

static void order(const char *name, const char *value) { setenv(name, value, 1); }

/* What the driver keeps for later goes back. */
static void tidy(void) {
    CALL("cuMemPoolTrimTo", (CUmemoryPool, size_t))(pool, 0);
    CUmemoryPool current;
    CALL("cuDeviceGetMemPool", (CUmemoryPool *, CUdevice))(&current, 0);
    CALL("cuMemPoolTrimTo", (CUmemoryPool, size_t))(current, 0);
    CALL("cuDeviceGraphMemTrim", (CUdevice))(0);
}

/* `knob` has the driver, or a table of the guard, behave strangely for one allocation. */
static void strangely(const struct row *row, const char *step, uint64_t size, const char *knob,
                    const char *value) {
    uint64_t made = 0;
    order(knob, value);
    int code = row->make(row->name, size, &made);
    line(row->name, step, code);
    unsetenv(knob);
    if (code == 0) {
        row->undo(row->name, made);
    } else if (code == 2 && made && !strstr(row->name, "Graph") && !strstr(row->name, "Ctx")) {
        /* The driver has it no more. */
        line(row->name, "unknown", row->undo(row->name, made));
    }
    tidy();
    line(row->name, "after", 0);
}

static void audit_row(const struct row *row, uint64_t size) {
    uint64_t made = 0;
    int is_graph = strstr(row->name, "Graph") != NULL;
    int is_context = strstr(row->name, "CtxCreate") != NULL;
    strangely(row, "plain", size, "NONE", "");
    if (strstr(row->name, "GraphAdd")) { /* never fits */
        return;
    }
    strangely(row, "refused", size, "FAIRLEAD_STUB_REFUSE", row->name);
    if (!is_graph && !strstr(row->name, "Ctx") && strcmp(row->name, "cuMemMap")) {
        /* those stay counted */
        strangely(row, "full", size, "FAIRLEAD_GUARD_FULL", "1");
    }
    if (!is_context) {
        strangely(row, "over", size * 32, "NONE", "");
    }
    if (!is_graph && !strstr(row->name, "Ctx") && strcmp(row->name, "cuMemCreate")) {
        strangely(row, "nowhere", size, "FAIRLEAD_STUB_REFUSE", "cuCtxGetCurrent");
    }
    if (strstr(row->name, "Pitch")) {
        strangely(row, "larger", size, "FAIRLEAD_STUB_PITCH", "8192");
        strangely(row, "largest", size, "FAIRLEAD_STUB_PITCH", "65536");
        strangely(row, "near", size * 3, "NONE", "");
    } else if (strstr(row->name, "Array")) {
        strangely(row, "larger", size, "FAIRLEAD_STUB_ARRAY_TIMES", "3");
        strangely(row, "largest", size, "FAIRLEAD_STUB_ARRAY_TIMES", "32");
    } else if (strstr(row->name, "Async")) {
        strangely(row, "larger", size, "FAIRLEAD_STUB_POOL_STEP", "50331648");
        strangely(row, "largest", size, "FAIRLEAD_STUB_POOL_STEP", "67108864");
    } else if (strstr(row->name, "Instantiate")) {
        strangely(row, "larger", size, "FAIRLEAD_STUB_GRAPH_BEYOND", "8388608");
    }
    if (row->make(row->name, size, &made) == 0) {
        order("FAIRLEAD_STUB_REFUSE", strstr(row->name, "Graph")      ? "cuGraphExecDestroy"
                                      : strstr(row->name, "SetLimit") ? row->name
                                                                      : "release");
        line(row->name, "kept", row->undo(row->name, made));
        unsetenv("FAIRLEAD_STUB_REFUSE");
        row->undo(row->name, made);
        tidy();
        line(row->name, "freed", 0);
    }
}

/* A release under another name than that of the row which allocated. */
static void released_by(const char *release, const char *with, uint64_t size) {
    uint64_t made = 0;
    for (const struct row *row = rows; row < rows + row_count; row++) {
        if (strcmp(row->name, with) == 0) {
            line(release, "made", row->make(with, size, &made));
        }
    }
    order("FAIRLEAD_STUB_REFUSE", release);
    line(release, "kept", CALL(release, (uint64_t, CUstream))(made, STREAM));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line(release, "freed", CALL(release, (uint64_t, CUstream))(made, STREAM));
}

/* The primary context goes, with a block in it, and comes again. */
static void primary(const char *release, uint64_t size) {
    uint64_t made;
    CUcontext again;
    CUresult (*retain)(CUcontext *, CUdevice) = CALL("cuDevicePrimaryCtxRetain",
                                                     (CUcontext *, CUdevice));
    linear("cuMemAlloc_v2", size, &made);
    retain(&again, 0);
    line(release, "twice", 0);
    order("FAIRLEAD_STUB_REFUSE", release);
    line(release, "kept", CALL(release, (CUdevice))(0));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line(release, "once", CALL(release, (CUdevice))(0));
    order("FAIRLEAD_STUB_REFUSE", release);
    line(release, "kept", CALL(release, (CUdevice))(0));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line(release, "gone", CALL(release, (CUdevice))(0));
    order("FAIRLEAD_STUB_REFUSE", "cuDevicePrimaryCtxRetain");
    line(release, "refused", retain(&again, 0));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line(release, "again", retain(&context, 0));
}

/* A context with a block, an array and a heap in it. */
static void own_context(const char *destroy, uint64_t size) {
    uint64_t made;
    CUcontext own;
    CUDA_ARRAY_DESCRIPTOR shape = {1024, size / 4096, 0x20, 1};
    CALL("cuCtxCreate_v2", (CUcontext *, unsigned int, CUdevice))(&own, 0, 0);
    linear("cuMemAlloc_v2", size, &made);
    CALL("cuArrayCreate_v2", (uint64_t *, const void *))(&made, &shape);
    CALL("cuCtxSetLimit", (int, size_t))(CU_LIMIT_PRINTF_FIFO_SIZE, 65536);
    CALL("cuCtxSetLimit", (int, size_t))(CU_LIMIT_STACK_SIZE, 1024);
    CALL("cuCtxSetLimit", (int, size_t))(CU_LIMIT_STACK_SIZE, 512);
    line(destroy, "made", 0);
    order("FAIRLEAD_STUB_REFUSE", destroy);
    line(destroy, "kept", CALL(destroy, (CUcontext))(own));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line(destroy, "gone", CALL(destroy, (CUcontext))(own));
}

static CUresult free_async_of(uint64_t block) {
    return CALL("cuMemFreeAsync", (uint64_t, CUstream))(block, STREAM);
}

/* A pool of its own: what its hooks see, one after the other. */
static void own_pool(uint64_t size) {
    CUmemoryPool own;
    uint64_t first, second, value = 0;
    CUmemPoolProps of = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUresult (*make)(CUmemoryPool *, const void *) = CALL("cuMemPoolCreate",
                                                          (CUmemoryPool *, const void *));
    CUresult (*from)(uint64_t *, size_t, CUmemoryPool, CUstream) =
        CALL("cuMemAllocFromPoolAsync", (uint64_t *, size_t, CUmemoryPool, CUstream));
    CUresult (*destroy)(CUmemoryPool) = CALL("cuMemPoolDestroy", (CUmemoryPool));
    CUresult (*trim)(CUmemoryPool, size_t) = CALL("cuMemPoolTrimTo", (CUmemoryPool, size_t));
    CUresult (*set)(CUmemoryPool, int, void *) = CALL("cuMemPoolSetAttribute",
                                                      (CUmemoryPool, int, void *));
    static const char *const frees[] = {"cuMemFreeAsync", "cuMemFreeAsync_ptsz"};
    for (int form = 0; form < 2; form++) {
        CUresult (*free_async)(uint64_t, CUstream) = CALL(frees[form], (uint64_t, CUstream));
        make(&own, &of);
        from(&first, size, own, STREAM), from(&second, size, own, STREAM);
        line(frees[form], "made", free_async(first, STREAM));
        order("FAIRLEAD_STUB_REFUSE", "cuMemPoolDestroy");
        line("cuMemPoolDestroy", "kept", destroy(own));
        unsetenv("FAIRLEAD_STUB_REFUSE");
        line("cuMemPoolDestroy", "live", destroy(own));
        line("cuMemPoolDestroy", "freed", free_async(second, STREAM));
    }
    make(&own, &of);
    order("FAIRLEAD_GUARD_FULL", "1");
    line("cuMemPoolCreate", "full", from(&first, size, own, STREAM));
    unsetenv("FAIRLEAD_GUARD_FULL");
    from(&first, size, own, STREAM), free_async_of(first);
    line("cuMemPoolTrimTo", "trimmed", trim(own, 0));
    from(&first, size, own, STREAM), free_async_of(first);
    CALL("cuDeviceSetMemPool", (CUdevice, CUmemoryPool))(0, own);
    CALL("cuStreamSynchronize", (CUstream))(NULL);
    line("cuMemPoolSetAttribute", "set", set(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    /* Near the limit: what the pool has is used, else trimmed. */
    uint64_t block;
    from(&first, size, own, STREAM);
    linear("cuMemAlloc_v2", 5 * size, &block);
    line("near", "in the pool", from(&second, size, own, STREAM));
    line("near", "given back", free_async_of(first) | free_async_of(second));
    line("near", "trimmed", linear("cuMemAlloc_v2", 8 * size, &first));
    CALL("cuMemFree_v2", (uint64_t))(first), CALL("cuMemFree_v2", (uint64_t))(block);
    CALL("cuDeviceSetMemPool", (CUdevice, CUmemoryPool))(0, NULL);
    line("near", "end", destroy(own));
}

/* Handles: mapped twice, and one of another process. */
static void handles(uint64_t size) {
    uint64_t own, other, at = 0x10000000;
    CUmemAllocationProp prop = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, NULL, {0}};
    CUresult (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long) =
        CALL("cuMemMap", (uint64_t, size_t, size_t, uint64_t, unsigned long long));
    CUresult (*unmap)(uint64_t, size_t) = CALL("cuMemUnmap", (uint64_t, size_t));
    CUresult (*release)(uint64_t) = CALL("cuMemRelease", (uint64_t));
    CALL("cuMemCreate", (uint64_t *, size_t, const void *, unsigned long long))(&own, size, &prop,
                                                                              0);
    CALL("cuMemImportFromShareableHandle", (uint64_t *, void *, int))(&other, NULL, 1);
    order("FAIRLEAD_STUB_REFUSE", "cuMemMap");
    line("cuMemMap", "refused", map(at, size, 0, own, 0));
    line("cuMemMap", "import refused", map(at, size, 0, other, 0));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line("cuMemMap", "over", map(at, 32 * size, 0, other, 0));
    line("cuMemMap", "own", map(at, size, 0, own, 0));
    line("cuMemMap", "import", map(at + size, size, 0, other, 0));
    order("FAIRLEAD_STUB_REFUSE", "cuMemRelease");
    line("cuMemRelease", "kept", release(own));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line("cuMemRelease", "mapped", release(own));
    order("FAIRLEAD_STUB_REFUSE", "cuMemUnmap");
    line("cuMemUnmap", "kept", unmap(at, 2 * size));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line("cuMemUnmap", "gone", unmap(at, 2 * size));
    release(other);
}

/* The driver's pitch is less than what is reserved for it; four times the rows fit only so. */
static void pitched(uint64_t size) {
    uint64_t made, rows_of = size / 1024;
    unsigned int low = 0, pitch_v1;
    size_t pitch;
    CUresult (*later)(uint64_t *, size_t *, size_t, size_t, unsigned int) = CALL(
        "cuMemAllocPitch_v2", (uint64_t *, size_t *, size_t, size_t, unsigned int));
    CUresult (*first)(unsigned int *, unsigned int *, unsigned int, unsigned int, unsigned int) =
        CALL("cuMemAllocPitch",
             (unsigned int *, unsigned int *, unsigned int, unsigned int, unsigned int));
    for (unsigned int more = 1; more <= 4; more += 3) {
        line("cuMemAllocPitch_v2", "settled", later(&made, &pitch, 1000, rows_of * more, 4));
        CALL("cuMemFree_v2", (uint64_t))(made);
        line("cuMemAllocPitch", "settled",
             first(&low, &pitch_v1, 1000, (unsigned int)rows_of * more, 4));
        CALL("cuMemFree", (unsigned int))(low);
    }
}

/* An import that is opened twice. */
static void opened_twice(uint64_t size) {
    CUipcMemHandle from = {{0}};
    uint64_t made, again;
    memcpy(from.reserved + 8, &size, sizeof size);
    CUresult (*open_ipc)(uint64_t *, CUipcMemHandle, unsigned int) =
        CALL("cuIpcOpenMemHandle_v2", (uint64_t *, CUipcMemHandle, unsigned int));
    CUresult (*close_ipc)(uint64_t) = CALL("cuIpcCloseMemHandle", (uint64_t));
    open_ipc(&made, from, 1);
    memcpy(from.reserved, &made, sizeof made);
    line("cuIpcOpenMemHandle_v2", "twice", open_ipc(&again, from, 1));
    order("FAIRLEAD_STUB_REFUSE", "cuIpcCloseMemHandle");
    line("cuIpcCloseMemHandle", "kept", close_ipc(made));
    unsetenv("FAIRLEAD_STUB_REFUSE");
    line("cuIpcCloseMemHandle", "once", close_ipc(made));
    line("cuIpcCloseMemHandle", "gone", close_ipc(made));
}

/* Pointers and sizes that no program should ask for: the driver's answer, or out of memory. */
static void strange_values(uint64_t size) {
    uint64_t made = 0;
    CUresult (*give)(uint64_t) = CALL("cuMemFree_v2", (uint64_t));
    linear("cuMemAlloc_v2", size, &made);
    line("cuMemFree_v2", "once", give(made));
    line("cuMemFree_v2", "again", give(made));
    line("cuMemFree_v2", "none", give(0));
    line("cuMemFree_v2", "strange", give(~0ull));
    for (const struct row *row = rows; row < rows + row_count; row++) {
        if (!strstr(row->name, "Ctx") && !strstr(row->name, "Graph")) {
            made = 0;
            CUresult code = row->make(row->name, ~0ull, &made);
            printf("%s largest size %s\n", row->name, code ? "refused" : "granted");
            if (code == 0) {
                row->undo(row->name, made);
            }
            tidy();
            line(row->name, "after", 0);
        }
    }
    line("cuMemAlloc_v2", "no size", linear("cuMemAlloc_v2", 0, &made));
}

static void views(uint64_t size) {
    uint64_t made;
    size_t some = 0, all = 0;
    unsigned int low = 0, lower = 0;
    linear("cuMemAlloc_v2", size, &made);
    CALL("cuMemGetInfo_v2", (size_t *, size_t *))(&some, &all);
    printf("cuMemGetInfo_v2 free %zu total %zu\n", some, all);
    CALL("cuMemGetInfo", (unsigned int *, unsigned int *))(&low, &lower);
    printf("cuMemGetInfo free %u total %u\n", low, lower);
    CALL("cuDeviceTotalMem_v2", (size_t *, CUdevice))(&all, 0);
    CALL("cuDeviceTotalMem", (unsigned int *, CUdevice))(&lower, 0);
    printf("cuDeviceTotalMem_v2 %zu\ncuDeviceTotalMem %u\n", all, lower);
    CALL("cuMemFree_v2", (uint64_t))(made);
}

void audit(uint64_t size) {
    region = open(getenv("FAIRLEAD_AUDIT_REGION"), O_RDONLY);
    truth = open(getenv("FAIRLEAD_STUB_TRUTH"), O_RDONLY);
    used_first = word_of(region, USED_AT), truth_first = word_of(truth, 0);
    for (const struct row *row = rows; row < rows + row_count; row++) {
        audit_row(row, size);
    }
    released_by("cuMemFreeAsync", "cuMemAlloc_v2", size);
    released_by("cuMemFreeAsync_ptsz", "cuMemAlloc_v2", size);
    released_by("cuMemFree", "cuMemAlloc", size);
    own_context("cuCtxDestroy", size);
    own_context("cuCtxDestroy_v2", size);
    own_pool(size);
    handles(size);
    pitched(size);
    opened_twice(size);
    strange_values(size);
    views(size);
    audit_launches();
    primary("cuDevicePrimaryCtxRelease", size);
    primary("cuDevicePrimaryCtxRelease_v2", size);
    primary("cuDevicePrimaryCtxReset", size);
    primary("cuDevicePrimaryCtxReset_v2", size);
}
