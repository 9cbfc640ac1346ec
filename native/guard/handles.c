/* Physical memory by handle: it counts until its last reference and mapping are gone. */
#include "charge.h"

static struct table handles, mappings;

void handles_forget(void) { table_forget(&handles), table_forget(&mappings); }

CUresult on_create(CUresult (*real)(CUallocation *, size_t, const CUmemAllocationProp *,
                                    unsigned long long),
                   CUallocation *handle, size_t size, const CUmemAllocationProp *prop,
                   unsigned long long flags) {
    if (!handle || !prop || !size || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return real(handle, size, prop, flags);
    }
    struct place place = {NULL, prop->location.id, gpu_of(prop->location.id)};
    if (charge(place.gpu, size)) {
        return NO_MEMORY;
    }
    CUresult code = real(handle, size, prop, flags);
    if (keep(&handles, code, code == CUDA_SUCCESS ? *handle : 0, &place, size)) {
        undo_handle(*handle);
        guard_release(place.gpu, size);
        return NO_MEMORY;
    }
    return code;
}

/* One reference or mapping less, before the driver is asked. Returns the bytes that go with it. */
static uint64_t drop(CUallocation handle, struct entry *entry) {
    if (table_count(&handles, handle, -1, entry) && entry->count == 0) {
        table_take(&handles, handle, entry);
        return entry->size;
    }
    return 0;
}

static void undrop(CUallocation handle, const struct entry *entry, uint64_t bytes) {
    struct entry again = *entry;
    if (bytes) {
        again.count = 1;
        table_put(&handles, &again);
    } else {
        table_count(&handles, handle, 1, &again);
    }
}

CUresult on_release_handle(CUresult (*real)(CUallocation), CUallocation handle) {
    struct entry entry = {0};
    uint64_t bytes = drop(handle, &entry);
    CUresult code = real(handle);
    if (code != CUDA_SUCCESS) {
        undrop(handle, &entry, bytes);
    } else {
        guard_release(entry.gpu, bytes);
    }
    return code;
}

CUresult on_retain_handle(CUresult (*real)(CUallocation *, void *), CUallocation *handle,
                          void *address) {
    struct entry entry;
    CUresult code = real(handle, address);
    if (code == CUDA_SUCCESS && handle) {
        table_count(&handles, *handle, 1, &entry);
    }
    return code;
}

/* Memory of a handle that this process created is counted there; else it is an import. */
CUresult on_map(CUresult (*real)(CUdeviceptr, size_t, size_t, CUallocation, unsigned long long),
                CUdeviceptr pointer, size_t size, size_t offset, CUallocation handle,
                unsigned long long flags) {
    struct entry entry = {0};
    struct entry mapping = {pointer, size, 0, handle, -1, 1};
    int is_ours = table_count(&handles, handle, 1, &entry);
    if (!is_ours && size) {
        struct place place;
        if (here(&place) == CUDA_SUCCESS ? charge(place.gpu, size) : !guard_is_view()) {
            return NO_MEMORY;
        }
        mapping.gpu = place.gpu;
    }
    CUresult code = real(pointer, size, offset, handle, flags);
    if (code == CUDA_SUCCESS) {
        table_put(&mappings, &mapping);
    } else if (is_ours) {
        guard_release(entry.gpu, drop(handle, &entry));
    } else {
        guard_release(mapping.gpu, size);
    }
    return code;
}

CUresult on_unmap(CUresult (*real)(CUdeviceptr, size_t), CUdeviceptr pointer, size_t size) {
    uint64_t end = pointer + size;
    struct table dropped = {0};
    struct entry mapping, entry;
    for (uint64_t at = pointer; at < end && table_find(&mappings, at, &mapping) && mapping.size;
         at += mapping.size) {
        if (mapping.gpu < 0 && drop(mapping.other, &entry)) {
            table_put(&dropped, &entry);
        }
    }
    CUresult code = real(pointer, size);
    for (uint64_t at = pointer; at < end && table_find(&mappings, at, &mapping) && mapping.size;
         at += mapping.size) {
        int was_last = table_take(&dropped, mapping.other, &entry);
        if (code != CUDA_SUCCESS) {
            if (mapping.gpu < 0) {
                undrop(mapping.other, &entry, was_last ? entry.size : 0);
            }
            continue;
        }
        table_take(&mappings, at, &mapping);
        if (mapping.gpu >= 0) {
            guard_release(mapping.gpu, mapping.size);
        } else if (was_last) {
            guard_release(entry.gpu, entry.size);
        }
    }
    return code;
}
