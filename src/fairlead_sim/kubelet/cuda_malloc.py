"""The program of the images `cuda-malloc:<n>G`: what it takes, and what it prints without memory.

Specification: docs/spec/gpu-sharing.md#simulated-programs. The C program that plays it on a real
kubelet is compiled with these.
"""

from __future__ import annotations

from typing import Final

CONTEXT_MIB: Final = 121
"""What a CUDA context itself takes (document 001: 3 GiB allocated show as 3193 MiB used)."""
NO_MEMORY: Final = (
    'CUDA error at cgpu_cuda_malloc.cu:119 code=2(cudaErrorMemoryAllocation) "cudaMalloc( '
    '(void**)&dev_c, malloc_size)"'
)
"""The last line of a program that gets no memory (document 001)."""
NO_MEMORY_STATUS: Final = 1
"""Its exit status."""
