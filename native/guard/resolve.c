/* Which function a name stands for: docs/spec/gpu-sharing.md#resolution-by-the-guard.
 *
 * `dlsym` and `dlvsym` are hooked, so the real ones are found by walking the symbol tables of the
 * C library. entry.S jumps to them for every name that is not hooked, so that they see the
 * caller's own frame.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>

#include "driver.h"
#include "guard.h"
#include "sys.h"

typedef void *(*find_symbol)(void *, const char *);
typedef void *(*open_library)(const char *, int);

static void *no_symbol(void) { return NULL; }

void *resolve_dlsym = (void *)no_symbol;
void *resolve_dlvsym = (void *)no_symbol;
void *hook_real[HOOK_COUNT];
static void *helper_real[HELPER_COUNT];
static open_library real_dlopen;
static void *opened[2]; /* by enum library: the handle that a program gave first */
static uint32_t is_found;

void resolve_entry_dlsym(void);
void resolve_entry_dlvsym(void);

static int compare(const char *one, const char *other) {
    while (*one && *one == *other) {
        one++, other++;
    }
    return (unsigned char)*one - (unsigned char)*other;
}

static int ends_with(const char *path, const char *name) {
    const char *last = path;
    for (; *path; path++) {
        if (*path == '/') {
            last = path + 1;
        }
    }
    return compare(last, name) == 0;
}

struct symbols {
    const ElfW(Sym) *table;
    const char *names;
    const uint32_t *hash;
    uintptr_t base;
};

static void *symbol(const struct symbols *of, const char *name) {
    uint32_t buckets = of->hash[0], first = of->hash[1], words = of->hash[2], value = 5381;
    const uint32_t *bucket = of->hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    for (const char *at = name; *at; at++) {
        value = value * 33 + (unsigned char)*at;
    }
    uint32_t index = bucket[value % buckets];
    if (index < first) {
        return NULL;
    }
    for (;; index++) {
        const ElfW(Sym) *found = &of->table[index];
        if ((chain[index - first] | 1) == (value | 1) && found->st_shndx != 0 &&
            compare(of->names + found->st_name, name) == 0) {
            return (void *)(of->base + found->st_value);
        }
        if (chain[index - first] & 1) {
            return NULL;
        }
    }
}

static int look(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!ends_with(object->dlpi_name, "libc.so.6") && !ends_with(object->dlpi_name, "libdl.so.2")) {
        return 0;
    }
    struct symbols of = {NULL, NULL, NULL, object->dlpi_addr};
    for (int part = 0; part < object->dlpi_phnum; part++) {
        if (object->dlpi_phdr[part].p_type != PT_DYNAMIC) {
            continue;
        }
        const ElfW(Dyn) *entry =
            (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[part].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            /* The loader has made addresses of these. */
            if (entry->d_tag == DT_SYMTAB) {
                of.table = (const void *)entry->d_un.d_ptr;
            } else if (entry->d_tag == DT_STRTAB) {
                of.names = (const void *)entry->d_un.d_ptr;
            } else if (entry->d_tag == DT_GNU_HASH) {
                of.hash = (const void *)entry->d_un.d_ptr;
            }
        }
    }
    void *found = NULL;
    if (of.table && of.names && of.hash && (found = symbol(&of, "dlsym")) != NULL) {
        resolve_dlsym = found;
        found = symbol(&of, "dlvsym");
        resolve_dlvsym = found ? found : resolve_dlvsym;
        real_dlopen = (open_library)symbol(&of, "dlopen");
    }
    return 0;
}

static void find(void) {
    if (!__atomic_load_n(&is_found, __ATOMIC_ACQUIRE)) {
        dl_iterate_phdr(look, NULL);
        __atomic_store_n(&is_found, real_dlopen != NULL, __ATOMIC_RELEASE);
    }
}

/* The driver's library, if the process has loaded it; it is never loaded for the guard. */
static void *library(enum library which) {
    find();
    void *handle = __atomic_load_n(&opened[which], __ATOMIC_ACQUIRE);
    if (!handle && real_dlopen) {
        handle = real_dlopen(which == LIBRARY_CUDA ? "libcuda.so.1" : "libnvidia-ml.so.1",
                             1 | 4 /* lazy, only if it is loaded */);
        if (handle) {
            __atomic_store_n(&opened[which], handle, __ATOMIC_RELEASE);
        }
    }
    return handle;
}

static void *in_library(void **kept, enum library which, const char *name) {
    void *real = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    if (!real) {
        void *handle = library(which);
        real = handle ? ((find_symbol)resolve_dlsym)(handle, name) : NULL;
        if (real) {
            __atomic_store_n(kept, real, __ATOMIC_RELEASE);
        }
    }
    return real;
}

void *resolve_real(enum hook hook) {
    return in_library(&hook_real[hook], hook_rows[hook].library, hook_rows[hook].name);
}

void *resolve_helper(enum helper helper) {
    return in_library(&helper_real[helper],
                      helper < HELPER_NVML ? LIBRARY_CUDA : LIBRARY_NVML, helper_names[helper]);
}

int resolve_hook(const char *name) {
    int low = 0, high = HOOK_COUNT - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        int order = compare(name, hook_rows[middle].name);
        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
    return -1;
}

static int contains(const char *text, const char *part) {
    for (; *text; text++) {
        const char *one = text, *other = part;
        while (*other && *one == *other) {
            one++, other++;
        }
        if (!*other) {
            return 1;
        }
    }
    return 0;
}

static int begins(const char *text, const char *part) {
    while (*part && *text == *part) {
        text++, part++;
    }
    return !*part;
}

void resolve_unknown(const char *name) {
    if (!(begins(name, "cuMem") || begins(name, "cuArray") || begins(name, "cuMipmapped")) ||
        !(contains(name, "Alloc") || contains(name, "Create"))) {
        return;
    }
    for (int hook = 0; hook < HOOK_COUNT; hook++) {
        if (compare(name, hook_rows[hook].symbol) == 0 ||
            compare(name, hook_rows[hook].name) == 0) {
            return;
        }
    }
    for (int known = 0; known_allocators[known]; known++) {
        if (compare(name, known_allocators[known]) == 0) {
            return;
        }
    }
    guard_log("an allocator that this version does not know: ", name);
    guard_count_unknown();
}

/* For entry.S: the address to return, 0 to go on in the real function, 1 to return NULL. */
void *resolve_name(void *handle, const char *name) {
    find();
    if (!name || !(begins(name, "cu") || begins(name, "nvml") || begins(name, "dl"))) {
        return NULL;
    }
    if (compare(name, "dlsym") == 0) {
        return (void *)resolve_entry_dlsym;
    }
    if (compare(name, "dlvsym") == 0) {
        return (void *)resolve_entry_dlvsym;
    }
    int hook = resolve_hook(name);
    if (hook < 0) {
        resolve_unknown(name);
        return NULL;
    }
    void *wrapper = hook_rows[hook].wrapper;
    void *real = resolve_real(hook);
    if (handle != NULL && handle != (void *)-1L) {
        void *found = ((find_symbol)resolve_dlsym)(handle, name);
        if (found != wrapper) {
            if (found && !real) {
                /* A library in a namespace of its own is known only by this handle. */
                __atomic_store_n(&opened[hook_rows[hook].library], handle, __ATOMIC_RELEASE);
                __atomic_store_n(&hook_real[hook], found, __ATOMIC_RELEASE);
            }
            return found ? wrapper : (void *)1;
        }
    }
    if (!real) {
        /* No library has it behind this one: the real function leaves the message for dlerror. */
        ((find_symbol)resolve_dlsym)((void *)-1L, name);
        return (void *)1;
    }
    return wrapper;
}

/* cuGetProcAddress: the driver answered with `found`. */
static void *wrapper_of(const char *symbol, int version, uint64_t flags, void *found) {
    int chosen = -1;
    int per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    for (int hook = 0; hook < HOOK_COUNT; hook++) {
        const struct hook_row *row = &hook_rows[hook];
        if (row->library != LIBRARY_CUDA) {
            continue;
        }
        int is_asked = compare(row->symbol, symbol) == 0;
        if (resolve_real(hook) == found && (chosen < 0 || is_asked)) {
            chosen = hook;
        }
    }
    if (chosen >= 0) {
        return hook_rows[chosen].wrapper;
    }
    /* The driver does not export it: the newest form for this version and kind of stream. */
    for (int is_exact = 1; is_exact >= 0 && chosen < 0; is_exact--) {
        for (int hook = 0; hook < HOOK_COUNT; hook++) {
            const struct hook_row *row = &hook_rows[hook];
            if (row->library == LIBRARY_CUDA && row->since <= version &&
                row->per_thread == (is_exact ? per_thread : 0) &&
                compare(row->symbol, symbol) == 0 &&
                (chosen < 0 || row->since > hook_rows[chosen].since)) {
                chosen = hook;
            }
        }
    }
    if (chosen < 0) {
        return NULL;
    }
    void *none = NULL;
    __atomic_compare_exchange_n(&hook_real[chosen], &none, found, 0, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return hook_rows[chosen].wrapper;
}

static void answer(CUresult code, const char *symbol, void **function, int version,
                   uint64_t flags) {
    if (code != CUDA_SUCCESS || !symbol || !function || !*function || !*symbol) {
        return;
    }
    if (compare(symbol, "cuGetProcAddress") == 0) {
        *function = hook_rows[version < 12000 ? HOOK_cuGetProcAddress : HOOK_cuGetProcAddress_v2]
                        .wrapper;
        return;
    }
    void *wrapper = wrapper_of(symbol, version, flags, *function);
    if (wrapper) {
        *function = wrapper;
    } else {
        resolve_unknown(symbol);
    }
}

CUresult on_address(CUresult (*real)(const char *, void **, int, uint64_t), const char *symbol,
                    void **function, int version, uint64_t flags) {
    CUresult code = real(symbol, function, version, flags);
    answer(code, symbol, function, version, flags);
    return code;
}

CUresult on_address_v2(CUresult (*real)(const char *, void **, int, uint64_t, int *),
                       const char *symbol, void **function, int version, uint64_t flags,
                       int *status) {
    CUresult code = real(symbol, function, version, flags, status);
    answer(code, symbol, function, version, flags);
    return code;
}
