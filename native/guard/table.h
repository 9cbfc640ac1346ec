/* What each pointer or handle of this process costs: a hash divided into shards, each with a lock
 * of its own, so that a look-up takes the same time among a million blocks.
 */
#ifndef FAIRLEAD_TABLE_H
#define FAIRLEAD_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TABLE_SHARDS 64u

/* `key` 0 is never in a table. `count`: references or mappings. `other`: what the kind needs. */
struct entry {
    uint64_t key;
    uint64_t size;
    uint64_t context;
    uint64_t other;
    int32_t gpu;
    uint32_t count;
};

struct shard {
    uint32_t lock;
    uint32_t used;
    uint32_t room; /* a power of two, or 0 */
    struct entry *entries;
};

struct table {
    struct shard shards[TABLE_SHARDS];
};

/* 0; -1 where there is no memory. An entry with the same key is replaced, which never fails. */
int table_put(struct table *table, const struct entry *entry);

/* 1 where it was there; the entry is taken out, or stays. */
int table_take(struct table *table, uint64_t key, struct entry *into);
int table_find(struct table *table, uint64_t key, struct entry *into);

/* Add to the count of an entry. Returns 1 and the entry after it; 0 where it is not there. */
int table_count(struct table *table, uint64_t key, int by, struct entry *into);

/* Take out one entry for which `wanted` is true; 0 where there is none. */
int table_take_any(struct table *table, int (*wanted)(const struct entry *, uint64_t),
                   uint64_t argument, struct entry *into);

/* The same, and it stays. */
int table_find_any(struct table *table, int (*wanted)(const struct entry *, uint64_t),
                   uint64_t argument, struct entry *into);

/* Forget everything, as a forked child does: its locks may be held by threads it lacks. */
void table_forget(struct table *table);

void local_lock(uint32_t *word);
void local_unlock(uint32_t *word);

#endif
