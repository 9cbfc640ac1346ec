/* What the files of a tenant share; `linked` is written by tools/build_native.py. */
#ifndef TENANT_H
#define TENANT_H

#include <stddef.h>
#include <stdint.h>

#include "driver.h"

/* A hooked name. */
struct linked {
    const char *export_name;
    const char *symbol;
    int since;
    int per_thread;
    void *function;
};

extern const struct linked linked[];

/* An allocator: `make` allocates `size` with the export `name`, `undo` frees what it made. */
struct row {
    const char *name;
    CUresult (*make)(const char *name, uint64_t size, uint64_t *made);
    CUresult (*undo)(const char *name, uint64_t made);
};

extern const struct row rows[];
extern const int row_count;

#define STREAM ((CUstream)1)
extern const char *way; /* how functions are found */
extern void *handle;    /* of the driver's library */
extern CUcontext context;
extern CUmemoryPool pool;

/* The function behind an export, found in the chosen way; `need` ends the program without one. */
void *find(const char *name);
void *need(const char *name);
#define CALL(name, type) ((CUresult(*) type)need(name))

CUresult linear(const char *name, uint64_t size, uint64_t *made);

/* See audit.c, compute.c and strange.c. */
void audit(uint64_t size);
void audit_launches(void);
void share(const char *how, int milliseconds);
void strange(const char *which, uint64_t size);
void answer(void);
void launch_in_threads(int many, int count);

#endif
