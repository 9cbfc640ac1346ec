/* The allocators of a tenant: how each allocates and frees. See tenant.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenant.h"

const char *way;
void *handle;
CUcontext context;
CUmemoryPool pool;

/* The function behind an export, found in the chosen way. */
void *find(const char *name) {
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

void *need(const char *name) {
    void *found = find(name);
    if (!found) {
        fprintf(stderr, "%s has no %s\n", way, name);
        exit(3);
    }
    return found;
}

CUresult linear(const char *name, uint64_t size, uint64_t *made) {
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

/* A graph with one node, in a child graph, instantiated by `name` and launched. */
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
    return CALL(name, (CUgraphNode *, CUgraph, void *, void *, size_t, void *))(
        &added, of, NULL, NULL, 0, &parameters);
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
/* A handle of another process, mapped: the mapping keeps it. */
static CUresult mapped(const char *name, uint64_t size, uint64_t *made) {
    static uint64_t place = 0x20000000000;
    uint64_t other, at = __atomic_fetch_add(&place, size, __ATOMIC_RELAXED);
    CUresult (*import)(uint64_t *, void *, int) = dlsym(handle, "cuMemImportFromShareableHandle");
    CUresult code = import(&other, NULL, 1);
    if (code == CUDA_SUCCESS) {
        *made = at;
        code = CALL(name, (uint64_t, size_t, size_t, uint64_t, unsigned long long))(at, size, 0,
                                                                                   other, 0);
        CALL("cuMemRelease", (uint64_t))(other);
    }
    return code;
}
static CUresult unmapped(const char *name, uint64_t made) {
    return (void)name, CALL("cuMemUnmap", (uint64_t, size_t))(made, 4096);
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

const struct row rows[] = {
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
    {"cuMemMap", mapped, unmapped},
    {"cuCtxCreate", new_context, end_context},
    {"cuCtxCreate_v2", new_context, end_context},
    {"cuCtxCreate_v3", new_context, end_context},
    {"cuCtxCreate_v4", new_context, end_context},
    {"cuGreenCtxCreate", new_context, end_context},
    {"cuCtxSetLimit", set_limit, unset_limit},
};
const int row_count = sizeof rows / sizeof rows[0];
