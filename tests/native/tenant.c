/* A program that allocates: `tenant WAY ROW SIZE COUNT …`, for the tests of the memory guard.
 *
 * WAY: how it finds the driver's functions. ROW: with which function it allocates. It allocates
 * COUNT blocks of SIZE, prints `granted N code C`, frees all, and prints `used N free F total T`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"
#include "tenant.h"

#define MOST 8192
#define STREAM ((CUstream)1)

static const char *way;
static void *handle;

/* The function behind an export, found in the chosen way. */
static void *find(const char *name) {
    const struct linked *row = linked;
    while (row->export_name && strcmp(row->export_name, name)) {
        row++;
    }
    if (strcmp(way, "link") == 0 && row->export_name) {
        return row->function;
    }
    if (strcmp(way, "next") == 0) {
        return dlsym(RTLD_NEXT, name);
    }
    if (strcmp(way, "default") == 0) {
        return dlsym(RTLD_DEFAULT, name);
    }
    if (strcmp(way, "dlvsym") == 0) {
        return dlvsym(handle, name, "ANY");
    }
    if (strncmp(way, "proc", 4) == 0 && row->export_name) {
        void *found = NULL;
        uint64_t flags = row->per_thread ? 2 : strcmp(way, "proc2f2") == 0 ? 2 : 1;
        int asked = row->since;
        if (strcmp(way, "proc1") == 0) {
            CUresult (*address)(const char *, void **, int, uint64_t) =
                dlsym(handle, "cuGetProcAddress");
            address(row->symbol, &found, asked, flags);
        } else {
            CUresult (*address)(const char *, void **, int, uint64_t, int *) =
                dlsym(handle, "cuGetProcAddress_v2");
            address(row->symbol, &found, asked, flags, NULL);
        }
        return found;
    }
    return dlsym(handle, name);
}

static void *need(const char *name) {
    void *found = find(name);
    if (!found) {
        fprintf(stderr, "%s has no %s\n", way, name);
        exit(3);
    }
    return found;
}

#define CALL(name, type) ((CUresult(*) type)need(name))

struct row {
    const char *name;
    CUresult (*make)(const char *name, uint64_t size, uint64_t *made);
    CUresult (*undo)(const char *name, uint64_t made);
};

static CUcontext context;
static CUmemoryPool pool;

static CUresult linear(const char *name, uint64_t size, uint64_t *made) {
    return CALL(name, (uint64_t *, size_t))(made, size);
}
static CUresult linear_v1(const char *name, uint64_t size, uint64_t *made) {
    return CALL(name, (unsigned int *, unsigned int))((unsigned int *)made, (unsigned int)size);
}
static CUresult free_v2(const char *name, uint64_t made) {
    return (void)name, CALL("cuMemFree_v2", (uint64_t))(made);
}
static CUresult free_v1(const char *name, uint64_t made) {
    return (void)name, CALL("cuMemFree", (unsigned int))((unsigned int)made);
}
static CUresult pitch(const char *name, uint64_t size, uint64_t *made) {
    size_t row;
    return CALL(name, (uint64_t *, size_t *, size_t, size_t, unsigned int))(made, &row, 4096,
                                                                            size / 4096, 4);
}
static CUresult pitch_v1(const char *name, uint64_t size, uint64_t *made) {
    unsigned int row;
    return CALL(name, (unsigned int *, unsigned int *, unsigned int, unsigned int, unsigned int))(
        (unsigned int *)made, &row, 4096, (unsigned int)(size / 4096), 4);
}
static CUresult managed(const char *name, uint64_t size, uint64_t *made) {
    return CALL(name, (uint64_t *, size_t, unsigned int))(made, size, 1);
}
static CUresult async(const char *name, uint64_t size, uint64_t *made) {
    return CALL(name, (uint64_t *, size_t, CUstream))(made, size, STREAM);
}
static CUresult from_pool(const char *name, uint64_t size, uint64_t *made) {
    return CALL(name, (uint64_t *, size_t, CUmemoryPool, CUstream))(made, size, pool, STREAM);
}
static CUresult free_async(const char *name, uint64_t made) {
    const char *form = strstr(name, "_ptsz") ? "cuMemFreeAsync_ptsz" : "cuMemFreeAsync";
    return CALL(form, (uint64_t, CUstream))(made, STREAM);
}
static CUresult create(const char *name, uint64_t size, uint64_t *made) {
    CUmemAllocationProp prop = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, NULL, {0}};
    CUresult code =
        CALL(name, (uint64_t *, size_t, const void *, unsigned long long))(made, size, &prop, 0);
    if (code == CUDA_SUCCESS) { /* mapped, released, mapped again by its address: one block */
        uint64_t again = 0, at = *made;
        CALL("cuMemMap", (uint64_t, size_t, size_t, uint64_t, unsigned long long))(at, size, 0,
                                                                                  *made, 0);
        CALL("cuMemRelease", (uint64_t))(*made);
        CALL("cuMemRetainAllocationHandle", (uint64_t *, void *))(&again, (void *)at);
        CALL("cuMemUnmap", (uint64_t, size_t))(at, size);
        *made = again;
    }
    return code;
}
static CUresult release(const char *name, uint64_t made) {
    return (void)name, CALL("cuMemRelease", (uint64_t))(made);
}
static CUresult array(const char *name, uint64_t size, uint64_t *made) {
    CUDA_ARRAY_DESCRIPTOR shape = {1024, size / 4096, 0x20, 1};
    return CALL(name, (uint64_t *, const void *))(made, &shape);
}
static CUresult array_v1(const char *name, uint64_t size, uint64_t *made) {
    CUDA_ARRAY_DESCRIPTOR_v1 shape = {1024, (unsigned int)(size / 4096), 0x20, 1};
    return CALL(name, (uint64_t *, const void *))(made, &shape);
}
static CUresult array_3d(const char *name, uint64_t size, uint64_t *made) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {1024, size / 16384, 4, 0x20, 1, 0};
    return CALL(name, (uint64_t *, const void *))(made, &shape);
}
static CUresult array_3d_v1(const char *name, uint64_t size, uint64_t *made) {
    CUDA_ARRAY3D_DESCRIPTOR_v1 shape = {1024, (unsigned int)(size / 16384), 4, 0x20, 1, 0};
    return CALL(name, (uint64_t *, const void *))(made, &shape);
}
static CUresult mipmapped(const char *name, uint64_t size, uint64_t *made) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {1024, size / 4096, 0, 0x20, 1, 0};
    return CALL(name, (uint64_t *, const void *, unsigned int))(made, &shape, 5);
}
static CUresult array_destroy(const char *name, uint64_t made) {
    return (void)name, CALL("cuArrayDestroy", (uint64_t))(made);
}
static CUresult mipmapped_destroy(const char *name, uint64_t made) {
    return (void)name, CALL("cuMipmappedArrayDestroy", (uint64_t))(made);
}

/* A graph with one node, in a child graph, instantiated and launched; `name` is the instantiation. */
static CUresult graph(const char *name, uint64_t size, uint64_t *made) {
    CUgraph outer, inner;
    CUgraphNode node;
    CUgraphExec exec = NULL;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.bytesize = size};
    CUresult (*create_graph)(CUgraph *, unsigned int) = dlsym(handle, "cuGraphCreate");
    CUresult (*child)(CUgraphNode *, CUgraph, void *, size_t, CUgraph) =
        dlsym(handle, "cuGraphAddChildGraphNode");
    alloc.poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0};
    create_graph(&outer, 0), create_graph(&inner, 0);
    CUresult code = CALL("cuGraphAddMemAllocNode", (CUgraphNode *, CUgraph, const void *, size_t,
                                                    void *))(&node, inner, NULL, 0, &alloc);
    if (code) {
        return code;
    }
    child(&node, outer, NULL, 0, inner);
    if (strstr(name, "WithFlags")) {
        code = CALL(name, (CUgraphExec *, CUgraph, unsigned long long))(&exec, outer, 0);
    } else if (strstr(name, "WithParams")) {
        uint64_t parameters[8] = {0};
        code = CALL(name, (CUgraphExec *, CUgraph, void *))(&exec, outer, parameters);
    } else {
        code = CALL(name, (CUgraphExec *, CUgraph, void *, char *, size_t))(&exec, outer, NULL,
                                                                            NULL, 0);
    }
    *made = (uint64_t)exec;
    const char *launch = strstr(name, "_ptsz") ? "cuGraphLaunch_ptsz" : "cuGraphLaunch";
    return code ? code : CALL(launch, (CUgraphExec, CUstream))(exec, STREAM);
}
static CUresult graph_destroy(const char *name, uint64_t made) {
    CUresult code = ((void)name, CALL("cuGraphExecDestroy", (uint64_t))(made));
    return code ? code : CALL("cuDeviceGraphMemTrim", (CUdevice))(0);
}

/* A node that can never fit; a small one is added first to see that others pass. */
static CUresult node(const char *name, uint64_t size, uint64_t *made) {
    CUgraph of;
    CUgraphNode added;
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUresult (*create_graph)(CUgraph *, unsigned int) = dlsym(handle, "cuGraphCreate");
    create_graph(&of, 0);
    *made = (uint64_t)of;
    parameters.of.alloc.poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0};
    parameters.of.alloc.bytesize = size * 1000;
    if (strcmp(name, "cuGraphAddMemAllocNode") == 0) {
        return CALL(name, (CUgraphNode *, CUgraph, void *, size_t, void *))(
            &added, of, NULL, 0, &parameters.of.alloc);
    }
    if (strcmp(name, "cuGraphAddNode") == 0) {
        return CALL(name, (CUgraphNode *, CUgraph, void *, size_t, void *))(&added, of, NULL, 0,
                                                                            &parameters);
    }
    return CALL(name, (CUgraphNode *, CUgraph, void *, void *, size_t, void *))(&added, of, NULL,
                                                                                NULL, 0, &parameters);
}
static CUresult leave(const char *name, uint64_t made) { return (void)name, (void)made, 0; }

/* Imports: the handle carries an address and a size; the memory is another process's. */
static CUresult ipc(const char *name, uint64_t size, uint64_t *made) {
    CUipcMemHandle from = {{0}};
    memcpy(from.reserved + 8, &size, sizeof size);
    return CALL(name, (uint64_t *, CUipcMemHandle, unsigned int))(made, from, 1);
}
static CUresult ipc_close(const char *name, uint64_t made) {
    return (void)name, CALL("cuIpcCloseMemHandle", (uint64_t))(made);
}
static CUresult external(const char *name, uint64_t size, uint64_t *made) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC from = {.type = 1, .size = size};
    return CALL(name, (uint64_t *, const void *))(made, &from);
}
static CUresult external_destroy(const char *name, uint64_t made) {
    return (void)name, CALL("cuDestroyExternalMemory", (uint64_t))(made);
}
static CUresult pool_pointer(const char *name, uint64_t size, uint64_t *made) {
    CUmemPoolPtrExportData from = {{0}};
    memcpy(from.reserved + 8, &size, sizeof size);
    return CALL(name, (uint64_t *, CUmemoryPool, void *))(made, pool, &from);
}

/* Contexts cost what the limits file has for them. */
static CUresult new_context(const char *name, uint64_t size, uint64_t *made) {
    CUresult code;
    CUcontext top;
    CUresult (*pop)(CUcontext *) = dlsym(handle, "cuCtxPopCurrent_v2");
    (void)size;
    if (strstr(name, "Green")) {
        return CALL(name, (uint64_t *, void *, CUdevice, unsigned int))(made, NULL, 0, 0);
    }
    if (strstr(name, "_v3")) {
        code = CALL(name, (uint64_t *, void *, int, unsigned int, CUdevice))(made, NULL, 0, 0, 0);
    } else if (strstr(name, "_v4")) {
        code = CALL(name, (uint64_t *, void *, unsigned int, CUdevice))(made, NULL, 0, 0);
    } else {
        code = CALL(name, (uint64_t *, unsigned int, CUdevice))(made, 0, 0);
    }
    return code ? code : pop(&top);
}
static CUresult end_context(const char *name, uint64_t made) {
    return strstr(name, "Green") ? CALL("cuGreenCtxDestroy", (uint64_t))(made)
                                 : CALL("cuCtxDestroy_v2", (uint64_t))(made);
}
static CUresult set_limit(const char *name, uint64_t size, uint64_t *made) {
    static uint64_t sum;
    sum += size;
    *made = 1;
    return CALL(name, (int, size_t))(CU_LIMIT_MALLOC_HEAP_SIZE, sum);
}
static CUresult unset_limit(const char *name, uint64_t made) {
    return (void)name, (void)made,
           CALL("cuCtxSetLimit", (int, size_t))(CU_LIMIT_MALLOC_HEAP_SIZE, 0);
}

static const struct row rows[] = {
    {"cuMemAlloc", linear_v1, free_v1},
    {"cuMemAlloc_v2", linear, free_v2},
    {"cuMemAllocPitch", pitch_v1, free_v1},
    {"cuMemAllocPitch_v2", pitch, free_v2},
    {"cuMemAllocManaged", managed, free_v2},
    {"cuMemAllocAsync", async, free_async},
    {"cuMemAllocAsync_ptsz", async, free_async},
    {"cuMemAllocFromPoolAsync", from_pool, free_async},
    {"cuMemAllocFromPoolAsync_ptsz", from_pool, free_async},
    {"cuMemCreate", create, release},
    {"cuArrayCreate", array_v1, array_destroy},
    {"cuArrayCreate_v2", array, array_destroy},
    {"cuArray3DCreate", array_3d_v1, array_destroy},
    {"cuArray3DCreate_v2", array_3d, array_destroy},
    {"cuMipmappedArrayCreate", mipmapped, mipmapped_destroy},
    {"cuGraphInstantiate", graph, graph_destroy},
    {"cuGraphInstantiate_v2", graph, graph_destroy},
    {"cuGraphInstantiateWithFlags", graph, graph_destroy},
    {"cuGraphInstantiateWithParams", graph, graph_destroy},
    {"cuGraphInstantiateWithParams_ptsz", graph, graph_destroy},
    {"cuGraphAddMemAllocNode", node, leave},
    {"cuGraphAddNode", node, leave},
    {"cuGraphAddNode_v2", node, leave},
    {"cuGraphAddNode_v3", node, leave},
    {"cuIpcOpenMemHandle", ipc, ipc_close},
    {"cuIpcOpenMemHandle_v2", ipc, ipc_close},
    {"cuMemPoolImportPointer", pool_pointer, free_v2},
    {"cuImportExternalMemory", external, external_destroy},
    {"cuCtxCreate", new_context, end_context},
    {"cuCtxCreate_v2", new_context, end_context},
    {"cuCtxCreate_v3", new_context, end_context},
    {"cuCtxCreate_v4", new_context, end_context},
    {"cuGreenCtxCreate", new_context, end_context},
    {"cuCtxSetLimit", set_limit, unset_limit},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void show(const char *when) {
    size_t some = 0, all = 0;
    CALL("cuMemGetInfo_v2", (size_t *, size_t *))(&some, &all);
    printf("%s free %zu total %zu\n", when, some, all);
}

static void begin(void) {
    if (strcmp(way, "dlmopen") == 0) {
        handle = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    } else if (strcmp(way, "deepbind") == 0) {
        handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND);
    } else {
        handle = dlopen("libcuda.so.1", RTLD_NOW);
    }
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    CUresult code = CALL("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))(&context, 0);
    if (code) {
        printf("context code %d\n", code);
        exit(0);
    }
    CUresult (*current)(CUcontext) = dlsym(handle, "cuCtxSetCurrent");
    current(context);
    CUmemPoolProps of = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUresult (*pool_create)(CUmemoryPool *, const void *) = dlsym(handle, "cuMemPoolCreate");
    pool_create(&pool, &of);
}

/* Allocate with one row until it is refused; then free all. */
static void fill(const struct row *row, uint64_t size, int count) {
    static uint64_t made[MOST];
    int granted = 0;
    CUresult code = CUDA_SUCCESS;
    while (granted < count && granted < MOST) {
        code = row->make(row->name, size, &made[granted]);
        if (code) {
            break;
        }
        granted++;
    }
    printf("%s granted %d code %d", row->name, granted, code);
    show("");
    int wrong = 0;
    for (int at = 0; at < granted; at++) {
        wrong = wrong ? wrong : row->undo(row->name, made[at]);
    }
    CALL("cuMemPoolTrimTo", (CUmemoryPool, size_t))(pool, 0);
    CUresult (*synchronize)(CUstream) = dlsym(handle, "cuStreamSynchronize");
    synchronize(NULL);
    printf("%s freed %d", row->name, wrong);
    show("");
}

/* Random allocations and frees of all kinds, until `count` are done. */
static unsigned int seed;
static int until;
static uint64_t largest;

static void *storm(void *number) {
    unsigned int chance = seed + (unsigned int)(uintptr_t)number;
    struct {
        const struct row *row;
        uint64_t made;
    } held[64] = {{NULL, 0}};
    CUcontext mine;
    CALL("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))(&mine, 0);
    CUresult (*current)(CUcontext) = dlsym(handle, "cuCtxSetCurrent");
    current(mine);
    for (int at = 0; at < until; at++) {
        int place = rand_r(&chance) % 64;
        if (held[place].row) {
            held[place].row->undo(held[place].row->name, held[place].made);
            held[place].row = NULL;
        } else {
            const struct row *row = &rows[rand_r(&chance) % 16];
            uint64_t size = (1 + rand_r(&chance) % (largest >> 16)) << 16;
            CUresult code = row->make(row->name, size, &held[place].made);
            held[place].row = code ? NULL : row;
            if (code && code != CUDA_ERROR_OUT_OF_MEMORY && code != 999) {
                printf("%s code %d\n", row->name, code);
            }
        }
    }
    for (int place = 0; place < 64; place++) {
        if (held[place].row) {
            held[place].row->undo(held[place].row->name, held[place].made);
        }
    }
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) {
        fprintf(stderr, "usage: tenant WAY fill|storm|hold|fork|exec …\n");
        return 2;
    }
    way = words[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    begin();
    if (strcmp(words[2], "fill") == 0) { /* fill ROW|all SIZE COUNT */
        for (int row = 0; row < ROWS; row++) {
            if (strcmp(words[3], "all") == 0 || strcmp(words[3], rows[row].name) == 0) {
                fill(&rows[row], strtoull(words[4], NULL, 10), atoi(words[5]));
            }
        }
    } else if (strcmp(words[2], "storm") == 0) { /* storm SEED THREADS COUNT LARGEST */
        pthread_t threads[64];
        int many = atoi(words[4]);
        seed = (unsigned int)atoi(words[3]);
        until = atoi(words[5]);
        largest = strtoull(words[6], NULL, 10);
        for (int at = 0; at < many; at++) {
            pthread_create(&threads[at], NULL, storm, (void *)(uintptr_t)(at * 7919));
        }
        for (int at = 0; at < many; at++) {
            pthread_join(threads[at], NULL);
        }
        CUresult (*synchronize)(CUstream) = dlsym(handle, "cuStreamSynchronize");
        size_t some, all;
        CALL("cuMemPoolTrimTo", (CUmemoryPool, size_t))(pool, 0);
        synchronize(NULL);
        CALL("cuMemGetInfo_v2", (size_t *, size_t *))(&some, &all);
        printf("done\n");
    } else if (strcmp(words[2], "hold") == 0) { /* hold SIZE: then wait for the end of input */
        uint64_t made;
        printf("held %d\n", linear("cuMemAlloc_v2", strtoull(words[3], NULL, 10), &made));
        while (getchar() != EOF) {
        }
    } else if (strcmp(words[2], "fork") == 0) { /* fork SIZE: parent and child allocate it */
        uint64_t made, size = strtoull(words[3], NULL, 10);
        printf("parent %d\n", linear("cuMemAlloc_v2", size, &made));
        if (fork() == 0) {
            CALL("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))(&context, 0);
            printf("child %d\n", linear("cuMemAlloc_v2", size, &made));
            fflush(stdout);
            _exit(0);
        }
        wait(NULL);
        printf("again %d\n", linear("cuMemAlloc_v2", size, &made));
    } else if (strcmp(words[2], "exec") == 0) { /* exec SIZE: allocate, then be another program */
        uint64_t made;
        printf("before %d\n", linear("cuMemAlloc_v2", strtoull(words[3], NULL, 10), &made));
        fflush(stdout);
        execl(words[0], words[0], way, "hold", words[3], (char *)NULL);
    } else if (strcmp(words[2], "find") == 0) { /* find: lines of `symbol version flags` */
        char symbol[128];
        int asked;
        unsigned long long flags;
        CUresult (*address)(const char *, void **, int, uint64_t, int *) =
            dlsym(handle, "cuGetProcAddress_v2");
        while (scanf(" %127[^,],%d,%llu", symbol, &asked, &flags) == 3) {
            void *found = NULL;
            Dl_info in = {0};
            const char *name = strcmp(symbol, "-") ? symbol : "";
            CUresult code = address(name, &found, asked, flags, NULL);
            if (found) {
                dladdr(found, &in);
            }
            const char *file = in.dli_fname ? strrchr(in.dli_fname, '/') + 1 : "-";
            printf("%s %d %s %s\n", symbol, code, file, in.dli_sname ? in.dli_sname : "-");
        }
    }
    return 0;
}
