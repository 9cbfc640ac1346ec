/* The guard of one process: whether it limits, what, and the functions behind its hooks. */
#ifndef FAIRLEAD_GUARD_H
#define FAIRLEAD_GUARD_H

#include "hooks.h" /* written by tools/build_native.py from hooks.toml */
#include "limits.h"
#include "region.h"

/* INACTIVE: no limits file, every call passes through. CLOSED: a limits file or region that is
 * not understood; every allocation is out of memory.
 */
enum guard_state { GUARD_UNKNOWN, GUARD_INACTIVE, GUARD_ACTIVE, GUARD_CLOSED };

extern struct limits guard_limits;
extern struct account guard_account;

/* Reads the limits file at the first call of a process, and after a fork. */
enum guard_state guard_state(void);

/* The limit of a GPU by its index in the limits file; 0 below 0 and where the guard is closed. */
uint64_t guard_limit(int gpu);

/* The index of a UUID in the limits file; -1 where it is not listed. */
int guard_gpu(const char *uuid);

/* Whether another provider limits, and the guard refuses nothing. */
int guard_is_view(void);

/* -1: out of memory; never where the guard only shows. */
int guard_reserve(int gpu, uint64_t size);
void guard_release(int gpu, uint64_t size);

/* The bytes in use of a GPU, without those of processes that died. */
uint64_t guard_used(int gpu);

void guard_count_unknown(void);

/* One line in the file that FAIRLEAD_GUARD_LOG names, where it names one. */
void guard_log(const char *what, const char *name);

/* What the hooks of CUDA forget after a fork. */
void cuda_forget(void);

/* The driver's function of a hook or helper; NULL where it has none. */
void *resolve_real(enum hook hook);
void *resolve_helper(enum helper helper);

/* The hook of an exported name, or -1. */
int resolve_hook(const char *name);

/* Counts a name that looks like an allocator and is in no list. */
void resolve_unknown(const char *name);

#endif
