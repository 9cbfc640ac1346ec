/* The test build: see mutable.h. */
#ifdef GUARD_MUTABLE
#include <stdio.h>
#include <stdlib.h>

#include "guard.h"
#include "mutable.h"

extern struct guard_site __start_guard_sites[], __stop_guard_sites[];

/* A hook that does nothing, as if it were not in the table. */
int guard_is_without(const char *name) {
    const char *without = getenv("FAIRLEAD_GUARD_WITHOUT");
    return without && resolve_hook(name) == resolve_hook(without) && resolve_hook(name) >= 0;
}

int guard_is_full(void) { return getenv("FAIRLEAD_GUARD_FULL") != NULL; }

int guard_site_is_out(struct guard_site *site) {
    static long known = -2;
    long out = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (out == -2) {
        const char *text = getenv("FAIRLEAD_GUARD_OUT");
        out = text ? atol(text) : -1;
        __atomic_store_n(&known, out, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&site->passed, 1, __ATOMIC_RELAXED);
    return site - __start_guard_sites == out;
}

/* FAIRLEAD_GUARD_SITES: a file that gets a line for each site, `number function what passed`. */
__attribute__((destructor)) static void list_sites(void) {
    const char *path = getenv("FAIRLEAD_GUARD_SITES");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (struct guard_site *each = __start_guard_sites; file && each < __stop_guard_sites; each++) {
        fprintf(file, "%ld %s %s %d\n", (long)(each - __start_guard_sites), each->in, each->what,
                (int)each->passed);
    }
    if (file) {
        fclose(file);
    }
}
#endif
