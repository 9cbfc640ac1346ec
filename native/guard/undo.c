/* Gives back to the driver what it allocated and what may not be kept: see charge.h. */
#define GUARD_UNDO
#include "charge.h"

void undo_pointer(CUdeviceptr pointer) {
    CUresult (*freed)(CUdeviceptr) = CALL(cuMemFree_v2, (CUdeviceptr));
    if (freed) {
        freed(pointer);
    }
}

void undo_async(CUdeviceptr pointer, CUstream stream) {
    CUresult (*freed)(CUdeviceptr, CUstream) = CALL(cuMemFreeAsync, (CUdeviceptr, CUstream));
    if (freed) {
        freed(pointer, stream);
    }
}

void undo_array(void *array, int is_mipmapped) {
    CUresult (*destroyed)(void *) = is_mipmapped ? CALL(cuMipmappedArrayDestroy, (void *))
                                                 : CALL(cuArrayDestroy, (void *));
    if (destroyed) {
        destroyed(array);
    }
}

void undo_handle(CUallocation handle) {
    CUresult (*released)(CUallocation) = CALL(cuMemRelease, (CUallocation));
    if (released) {
        released(handle);
    }
}

void undo_external(CUexternalMemory memory) {
    CUresult (*destroyed)(CUexternalMemory) = CALL(cuDestroyExternalMemory, (CUexternalMemory));
    if (destroyed) {
        destroyed(memory);
    }
}

void undo_ipc(CUdeviceptr pointer) {
    CUresult (*closed)(CUdeviceptr) = CALL(cuIpcCloseMemHandle, (CUdeviceptr));
    if (closed) {
        closed(pointer);
    }
}
