/* Graphs: memory of their nodes appears at a launch, so an executable graph is charged when it is
 * made, for as long as it lives. What the driver keeps beyond that is charged beside it.
 */
#include "charge.h"
#include "sys.h"

static struct table execs;
static uint32_t graph_lock;
static uint64_t graph_sum[REGION_GPUS], graph_extra[REGION_GPUS];
static int has_graphs;

void graphs_forget(void) {
    table_forget(&execs);
    graph_lock = 0;
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        graph_sum[gpu] = graph_extra[gpu] = 0;
    }
}

static int node_fits(const CUDA_MEM_ALLOC_NODE_PARAMS *node) {
    return !node || guard_is_view() ||
           node->bytesize <= guard_limit(gpu_of(node->poolProps.location.id));
}

CUresult on_graph_alloc_node(CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                                              CUDA_MEM_ALLOC_NODE_PARAMS *),
                             CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                             size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters) {
    return node_fits(parameters) ? real(node, graph, after, count, parameters) : NO_MEMORY;
}

static int params_fit(const CUgraphNodeParams *parameters) {
    return !parameters || parameters->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
           node_fits(&parameters->of.alloc);
}

CUresult on_graph_node(CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                                        CUgraphNodeParams *),
                       CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                       CUgraphNodeParams *parameters) {
    return params_fit(parameters) ? real(node, graph, after, count, parameters) : NO_MEMORY;
}

CUresult on_graph_node_v2(CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *,
                                           const void *, size_t, CUgraphNodeParams *),
                          CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                          const void *edges, size_t count, CUgraphNodeParams *parameters) {
    return params_fit(parameters) ? real(node, graph, after, edges, count, parameters) : NO_MEMORY;
}

#define GRAPH_DEPTH 8

/* Add the bytes of a graph's allocation nodes to `sums`, by GPU. -1: they cannot be known. */
static int add_nodes(CUgraph graph, uint64_t *sums, int depth) {
    CUresult (*nodes_of)(CUgraph, CUgraphNode *, size_t *) =
        CALL(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *));
    CUresult (*type_of)(CUgraphNode, int *) = CALL(cuGraphNodeGetType, (CUgraphNode, int *));
    CUresult (*alloc_of)(CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *) =
        CALL(cuGraphMemAllocNodeGetParams, (CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *));
    CUresult (*child_of)(CUgraphNode, CUgraph *) =
        CALL(cuGraphChildGraphNodeGetGraph, (CUgraphNode, CUgraph *));
    size_t count = 0;
    if (!alloc_of) {
        return 0; /* a driver before 11.4 has no such nodes */
    }
    if (depth > GRAPH_DEPTH || !nodes_of || !type_of ||
        nodes_of(graph, NULL, &count) != CUDA_SUCCESS) {
        return -1;
    }
    if (count == 0) {
        return 0;
    }
    size_t bytes = round_up(count * sizeof(CUgraphNode), 4096);
    CUgraphNode *nodes = sys_map(bytes, -1);
    int answer = !nodes || nodes_of(graph, nodes, &count) != CUDA_SUCCESS ? -1 : 0;
    for (size_t at = 0; answer == 0 && at < count; at++) {
        int type = -1;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        CUgraph child = NULL;
        if (type_of(nodes[at], &type) != CUDA_SUCCESS) {
            answer = -1;
        } else if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            int gpu = alloc_of(nodes[at], &alloc) == CUDA_SUCCESS
                          ? gpu_of(alloc.poolProps.location.id)
                          : -1;
            if (gpu < 0 || sums[gpu] + alloc.bytesize < sums[gpu]) {
                answer = -1;
            } else {
                sums[gpu] += alloc.bytesize;
            }
        } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
            answer = child_of && child_of(nodes[at], &child) == CUDA_SUCCESS
                         ? add_nodes(child, sums, depth + 1)
                         : -1;
        }
    }
    if (nodes) {
        sys_unmap(nodes, bytes);
    }
    return answer;
}

static uint64_t graph_reserved(int gpu) {
    uint64_t bytes = 0;
    CUdevice device = device_of(gpu);
    CUresult (*ask)(CUdevice, int, void *) =
        CALL(cuDeviceGetGraphMemAttribute, (CUdevice, int, void *));
    return ask && device >= 0 &&
                   ask(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) == CUDA_SUCCESS
               ? bytes
               : 0;
}

/* The bill of a GPU's graphs is the larger of their sum and of what the driver keeps for them.
 * `change` is added to the sum; the caller has reserved it already, or has not given it back.
 */
static void settle_graphs(int gpu, int64_t change) {
    local_lock(&graph_lock);
    uint64_t before = graph_sum[gpu] + graph_extra[gpu] + (change > 0 ? (uint64_t)change : 0);
    graph_sum[gpu] += (uint64_t)change;
    uint64_t reserved = graph_reserved(gpu);
    uint64_t after = reserved > graph_sum[gpu] ? reserved : graph_sum[gpu];
    if (after > before && guard_reserve(gpu, after - before)) {
        after = before;
    }
    graph_extra[gpu] = after - graph_sum[gpu];
    local_unlock(&graph_lock);
    guard_release(gpu, before > after ? before - after : 0);
}

static uint64_t exec_key(CUgraphExec exec, uint32_t gpu) {
    return (uint64_t)exec * REGION_GPUS + gpu;
}

static void give_back(const uint64_t *sums, uint32_t end) {
    for (uint32_t gpu = 0; gpu < end; gpu++) {
        guard_release((int)gpu, sums[gpu]);
    }
}

static int charge_nodes(CUgraph graph, uint64_t *sums) {
    if (add_nodes(graph, sums, 0)) {
        return -1;
    }
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        if (charge((int)gpu, sums[gpu])) {
            give_back(sums, gpu);
            return -1;
        }
    }
    return 0;
}

static void keep_exec(CUresult code, CUgraphExec *exec, const uint64_t *sums) {
    if (code != CUDA_SUCCESS) {
        give_back(sums, REGION_GPUS);
        return;
    }
    for (uint32_t gpu = 0; gpu < REGION_GPUS; gpu++) {
        if (sums[gpu]) {
            struct entry entry = {exec_key(*exec, gpu), sums[gpu], 0, 0, (int)gpu, 1};
            __atomic_store_n(&has_graphs, 1, __ATOMIC_RELEASE);
            table_put(&execs, &entry);
            settle_graphs((int)gpu, (int64_t)sums[gpu]);
        }
    }
}

#define INSTANTIATED(call)                                                                         \
    uint64_t sums[REGION_GPUS] = {0};                                                              \
    if (!exec || !graph) {                                                                         \
        return (call);                                                                             \
    }                                                                                              \
    if (charge_nodes(graph, sums)) {                                                               \
        return NO_MEMORY;                                                                          \
    }                                                                                              \
    CUresult code = (call);                                                                        \
    keep_exec(code, exec, sums);                                                                   \
    return code

CUresult on_instantiate(CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t),
                        CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log,
                        size_t size) {
    INSTANTIATED(real(exec, graph, error, log, size));
}

CUresult on_instantiate_flags(CUresult (*real)(CUgraphExec *, CUgraph, unsigned long long),
                              CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    INSTANTIATED(real(exec, graph, flags));
}

CUresult on_instantiate_params(CUresult (*real)(CUgraphExec *, CUgraph, void *), CUgraphExec *exec,
                               CUgraph graph, void *parameters) {
    INSTANTIATED(real(exec, graph, parameters));
}

CUresult on_graph_launch(CUresult (*real)(CUgraphExec, CUstream), CUgraphExec exec,
                         CUstream stream) {
    CUresult code = real(exec, stream);
    struct entry entry;
    if (code == CUDA_SUCCESS && __atomic_load_n(&has_graphs, __ATOMIC_ACQUIRE)) {
        for (uint32_t gpu = 0; gpu < guard_limits.count; gpu++) {
            if (table_find(&execs, exec_key(exec, gpu), &entry)) {
                settle_graphs((int)gpu, 0);
            }
        }
    }
    return code;
}

CUresult on_graph_exec_destroy(CUresult (*real)(CUgraphExec), CUgraphExec exec) {
    struct entry found[REGION_GPUS];
    uint32_t count = 0;
    if (__atomic_load_n(&has_graphs, __ATOMIC_ACQUIRE)) {
        for (uint32_t gpu = 0; gpu < guard_limits.count; gpu++) {
            count += (uint32_t)table_take(&execs, exec_key(exec, gpu), &found[count]);
        }
    }
    CUresult code = real(exec);
    for (uint32_t at = 0; at < count; at++) {
        if (code == CUDA_SUCCESS) {
            settle_graphs(found[at].gpu, -(int64_t)found[at].size);
        } else {
            table_put(&execs, &found[at]);
        }
    }
    return code;
}

CUresult on_graph_trim(CUresult (*real)(CUdevice), CUdevice device) {
    CUresult code = real(device);
    int gpu = gpu_of(device);
    if (code == CUDA_SUCCESS && gpu >= 0) {
        settle_graphs(gpu, 0);
    }
    return code;
}
