/* A program that allocates: `tenant WAY ROW SIZE COUNT …`, for the tests of the memory guard.
 *
 * WAY: how it finds the driver's functions. ROW: with which function it allocates. It allocates
 * COUNT blocks of SIZE, prints `granted N code C`, frees all, and prints `used N free F total T`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenant.h"

#define MOST 8192

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
        fprintf(stderr, "usage: tenant WAY fill|storm|hold|fork|exec|audit|strange|share|launches|ask|find …\n");
        return 2;
    }
    way = words[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    begin();
    if (strcmp(words[2], "fill") == 0) { /* fill ROW|all SIZE COUNT */
        for (int row = 0; row < row_count; row++) {
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
        int asked; /* f: allocate in a child, too; x: be another program */
        while ((asked = getchar()) != EOF) {
            if (asked == 'f' && fork() == 0) {
                CALL("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))(&context, 0);
                printf("child %d\n", linear("cuMemAlloc_v2", strtoull(words[3], NULL, 10), &made));
                fflush(stdout);
                _exit(0);
            } else if (asked == 'x') {
                execl(words[0], words[0], way, "hold", words[3], (char *)NULL);
            }
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
    } else if (strcmp(words[2], "audit") == 0) { /* audit SIZE: each row, and what refuses it */
        audit(strtoull(words[3], NULL, 10));
    } else if (strcmp(words[2], "share") == 0) { /* share eager|queue|mixed|graph MS */
        share(words[3], atoi(words[4]));
    } else if (strcmp(words[2], "launches") == 0) { /* launches THREADS COUNT */
        launch_in_threads(atoi(words[3]), atoi(words[4]));
    } else if (strcmp(words[2], "strange") == 0) { /* strange nulls|zero|twice SIZE */
        strange(words[3], strtoull(words[4], NULL, 10));
    } else if (strcmp(words[2], "ask") == 0) {
        answer();
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
