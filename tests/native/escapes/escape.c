/* A program that takes GPU memory past the guard: `escape WAY BYTES [REGION LIMIT]`.
 *
 * native/escapes.toml lists the ways; `plain` is what the guard refuses. It prints `code C` and
 * waits for the end of its input, so that its memory can be seen. Built with ESCAPE_BUILT_IN, the
 * driver's stub is part of it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"
#include "region.h"
#include "truth.h"

#define BLOCKS 16
#define DRIVER "libcuda.so.1"
#define STREAM ((CUstream)0x2)

typedef void *(*seeker)(const char *library, const char *name);

static const char *way;

#ifdef ESCAPE_BUILT_IN
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
static void *find(const char *name) {
    return strcmp(name, "cuMemAlloc_v2") == 0     ? (void *)cuMemAlloc_v2
           : strcmp(name, "cuCtxSetCurrent") == 0 ? (void *)cuCtxSetCurrent
                                                  : (void *)cuDevicePrimaryCtxRetain;
}
#else
/* The symbol table of a library that is loaded, read as the dynamic loader reads it. */
static void *walk(const char *name) {
    struct link_map *map = dlopen(DRIVER, RTLD_NOW);
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++) {
        if (each->d_tag == DT_SYMTAB) {
            symbols = (const ElfW(Sym) *)each->d_un.d_ptr;
        } else if (each->d_tag == DT_STRTAB) {
            names = (const char *)each->d_un.d_ptr;
        }
    }
    for (const ElfW(Sym) *each = symbols; (const char *)each < names; each++) {
        if (each->st_shndx && strcmp(names + each->st_name, name) == 0) {
            return (char *)map->l_addr + each->st_value;
        }
    }
    return NULL;
}

static void *find(const char *name) {
    static void *library;
    if (strcmp(way, "walk") == 0) {
        return walk(name);
    }
    if (strcmp(way, "deepbind") == 0 || strcmp(way, "namespace") == 0) {
        if (!library) {
            const char *path = getenv("ESCAPE_SEEKER");
            library = *way == 'd' ? dlopen(path, RTLD_NOW | RTLD_DEEPBIND)
                                  : dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
        }
        return ((seeker)dlsym(library, "seek"))(DRIVER, name);
    }
    return dlsym(dlopen(DRIVER, RTLD_NOW), name);
}
#endif

/* What every process of the container may do. */
static void clear(const char *path) {
    int file = open(path, O_RDWR);
    struct region *region =
        mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    region->gpus[0].used = 0;
    for (int slot = 0; slot < (int)REGION_SLOTS; slot++) {
        region->slots[slot].bytes[0] = 0;
    }
    munmap(region, REGION_BYTES);
    close(file);
}

static int by_cuda(uint64_t bytes, const char *region) {
    CUcontext context;
    CUdeviceptr made;
    CUresult (*retain)(CUcontext *, CUdevice) = find("cuDevicePrimaryCtxRetain");
    CUresult (*current)(CUcontext) = find("cuCtxSetCurrent");
    CUresult code = retain(&context, 0);
    if (code) {
        return code;
    }
    current(context);
#ifndef ESCAPE_BUILT_IN
    if (strcmp(way, "managed") == 0) {
        CUresult (*managed)(CUdeviceptr *, size_t, unsigned int) = find("cuMemAllocManaged");
        CUresult (*move)(CUdeviceptr, size_t, CUdevice, CUstream) = find("cuMemPrefetchAsync");
        code = managed(&made, bytes, 1);
        return code ? code : move(made, bytes, 1, STREAM);
    }
#endif
    if (strcmp(way, "traced") == 0) {
        raise(SIGSTOP);
    }
    CUresult (*allocate)(CUdeviceptr *, size_t) = find("cuMemAlloc_v2");
    for (int block = 0; block < BLOCKS && code == 0; block++) {
        code = allocate(&made, bytes / BLOCKS);
        if (region) {
            clear(region);
        }
    }
    return code;
}

/* Every word of a stopped child that is the limit becomes a larger one. */
static void raise_limit(pid_t child, uint64_t limit) {
    char path[64], line[512];
    uint64_t word, more = 1ull << 62;
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    int memory = open(path, O_RDWR);
    snprintf(path, sizeof path, "/proc/%d/maps", child);
    FILE *maps = fopen(path, "r");
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || strcmp(rights, "rw-p")) {
            continue;
        }
        for (; from < to; from += sizeof word) {
            if (pread(memory, &word, sizeof word, (off_t)from) == sizeof word && word == limit &&
                pwrite(memory, &more, sizeof more, (off_t)from) != sizeof more) {
                perror("the child's memory");
            }
        }
    }
    fclose(maps);
    close(memory);
}

static void trace(char **words) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execl(words[0], words[0], "traced", words[2], (char *)NULL);
        _exit(3);
    }
    waitpid(child, NULL, 0); /* it is this program again */
    ptrace(PTRACE_CONT, child, NULL, NULL);
    waitpid(child, NULL, 0); /* it knows its limit */
    raise_limit(child, strtoull(words[4], NULL, 10));
    ptrace(PTRACE_DETACH, child, NULL, NULL);
    waitpid(child, NULL, 0);
}

int main(int count, char **words) {
    if (count < 3) {
        return 2;
    }
    way = words[1];
    uint64_t bytes = strtoull(words[2], NULL, 10);
    int code;
    if (strcmp(way, "ptrace") == 0) {
        return trace(words), 0;
    } else if (strcmp(way, "device") == 0) {
        code = truth_add(0, bytes);
#ifndef ESCAPE_BUILT_IN
    } else if (strcmp(way, "graphics") == 0) {
        int (*take)(uint64_t) =
            dlsym(dlopen(getenv("ESCAPE_GRAPHICS"), RTLD_NOW), "vkAllocateMemory");
        code = take(bytes);
#endif
    } else {
        code = by_cuda(bytes, strcmp(way, "region") == 0 ? words[3] : NULL);
    }
    printf("code %d\n", code);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
