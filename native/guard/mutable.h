/* Built with GUARD_MUTABLE, one step of the hooks at a time can be taken out, so that the tests
 * show that one of their rows sees it. Any other build has none of this.
 */
#ifndef FAIRLEAD_MUTABLE_H
#define FAIRLEAD_MUTABLE_H

#ifdef GUARD_MUTABLE
#include <stdint.h>

/* A call that reserves, releases, undoes or keeps an entry: `what`, in which function. */
struct guard_site {
    const char *what, *in;
    uint64_t line, passed;
};

/* Whether FAIRLEAD_GUARD_OUT has the number of this site. */
int guard_site_is_out(struct guard_site *site);

/* Whether FAIRLEAD_GUARD_FULL is set: tables then have no room for another key. */
int guard_is_full(void);

#define GUARD_SITE(name)                                                                           \
    static struct guard_site site_here                                                             \
        __attribute__((section("guard_sites"), used, aligned(32))) = {name, __func__, __LINE__, 0}
#define GUARD_VOID(name, call)                                                                     \
    ({                                                                                             \
        GUARD_SITE(name);                                                                          \
        if (!guard_site_is_out(&site_here)) {                                                      \
            call;                                                                                  \
        }                                                                                          \
    })
#define GUARD_ANSWER(name, call)                                                                   \
    ({                                                                                             \
        GUARD_SITE(name);                                                                          \
        guard_site_is_out(&site_here) ? 0 : (call);                                                \
    })

#define guard_reserve(gpu, size) GUARD_ANSWER("guard_reserve", (guard_reserve)(gpu, size))
#define guard_release(gpu, size) GUARD_VOID("guard_release", (guard_release)(gpu, size))
#define region_spend(account, gpu, cost, now)                                                      \
    GUARD_ANSWER("region_spend", (region_spend)(account, gpu, cost, now))
#define table_put(table, entry) GUARD_ANSWER("table_put", (table_put)(table, entry))
#define table_count(table, key, by, into)                                                          \
    GUARD_ANSWER("table_count", (table_count)(table, key, by, into))
#define undo(pointer) GUARD_VOID("undo", undo(pointer))
#define undo_pointer(pointer) GUARD_VOID("undo_pointer", (undo_pointer)(pointer))
#define undo_async(pointer, stream) GUARD_VOID("undo_async", (undo_async)(pointer, stream))
#define undo_array(array, kind) GUARD_VOID("undo_array", (undo_array)(array, kind))
#define undo_handle(handle) GUARD_VOID("undo_handle", (undo_handle)(handle))
#define undo_external(memory) GUARD_VOID("undo_external", (undo_external)(memory))
#else
#define guard_is_full() 0
#endif

#endif
