/* Memory of other processes, opened in this one. */
#include "charge.h"

static struct table externals;

void imports_forget(void) { table_forget(&externals); }

/* The size of an import is known when it is there. It is not new memory, so it is charged then. */
static CUresult keep_import(CUresult code, CUdeviceptr *pointer, void (*undo)(CUdeviceptr)) {
    struct place place;
    struct entry entry;
    size_t size = 0;
    if (code != CUDA_SUCCESS || !pointer || table_count(&pointers, *pointer, 1, &entry)) {
        return code;
    }
    CUresult (*ask)(CUdeviceptr *, size_t *, CUdeviceptr) =
        CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr));
    CUdeviceptr base;
    if (here(&place) != CUDA_SUCCESS || !ask || ask(&base, &size, *pointer) != CUDA_SUCCESS ||
        charge(place.gpu, size)) {
        if (guard_is_view()) {
            return code; /* not counted */
        }
        undo(*pointer);
        return NO_MEMORY;
    }
    if (keep(&pointers, code, *pointer, &place, size)) {
        undo(*pointer);
        guard_release(place.gpu, size);
        return NO_MEMORY;
    }
    return code;
}

CUresult on_ipc_open(CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned int),
                     CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
    return keep_import(real(pointer, handle, flags), pointer, undo_ipc);
}

CUresult on_ipc_close(CUresult (*real)(CUdeviceptr), CUdeviceptr pointer) {
    struct entry entry;
    if (table_count(&pointers, pointer, -1, &entry) && entry.count) {
        CUresult code = real(pointer);
        if (code != CUDA_SUCCESS) {
            table_count(&pointers, pointer, 1, &entry);
        }
        return code;
    }
    int had_entry = table_take(&pointers, pointer, &entry);
    CUresult code = real(pointer);
    if (had_entry && code != CUDA_SUCCESS) {
        entry.count = 1;
        table_put(&pointers, &entry);
    } else if (had_entry) {
        guard_release(entry.gpu, entry.size);
    }
    return code;
}

CUresult on_pool_pointer(CUresult (*real)(CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *),
                         CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *shared) {
    return keep_import(real(pointer, pool, shared), pointer, undo_pointer);
}

CUresult on_external(CUresult (*real)(CUexternalMemory *, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *),
                     CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle) {
    struct place place;
    if (!memory || !handle || !handle->size) {
        return real(memory, handle);
    }
    if (here(&place) != CUDA_SUCCESS) {
        WITHOUT_CONTEXT(real(memory, handle), undo_external(*memory));
    }
    uint64_t size = handle->size;
    if (charge(place.gpu, size)) {
        return NO_MEMORY;
    }
    CUresult code = real(memory, handle);
    if (keep(&externals, code, code == CUDA_SUCCESS ? (uint64_t)*memory : 0, &place, size)) {
        undo_external(*memory);
        guard_release(place.gpu, size);
        return NO_MEMORY;
    }
    return code;
}

CUresult on_external_destroy(CUresult (*real)(CUexternalMemory), CUexternalMemory memory) {
    RELEASED(&externals, memory, real(memory));
}
