/* What each pointer or handle costs: see table.h. Open addressing; a removed entry is filled by
 * moving later ones back, so there are no tombstones.
 */
#include "table.h"

#include "mutable.h"
#undef table_put
#undef table_count

#include "sys.h"

/* 0 free, 1 held, 2 held and waited for. */
void local_lock(uint32_t *word) {
    uint32_t free = 0;
    if (__atomic_compare_exchange_n(word, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return;
    }
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0) {
        sys_futex_wait(word, 2, 10000000);
    }
}

void local_unlock(uint32_t *word) {
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2) {
        sys_futex_wake(word, 1);
    }
}

static uint64_t hash(uint64_t key) {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

static struct shard *shard_of(struct table *table, uint64_t key) {
    return &table->shards[hash(key) % TABLE_SHARDS];
}

static uint32_t home(const struct shard *shard, uint64_t key) {
    return (uint32_t)(hash(key) >> 16) & (shard->room - 1);
}

/* The place of a key, or the empty place where it belongs. The shard has room. */
static uint32_t place(const struct shard *shard, uint64_t key) {
    uint32_t at = home(shard, key);
    while (shard->entries[at].key && shard->entries[at].key != key) {
        at = (at + 1) & (shard->room - 1);
    }
    return at;
}

static int grow(struct shard *shard) {
    struct shard larger = {0, shard->used, shard->room ? shard->room * 2 : 64, NULL};
    larger.entries = sys_map(larger.room * sizeof(struct entry), -1);
    if (!larger.entries) {
        return -1;
    }
    for (uint32_t at = 0; at < shard->room; at++) {
        if (shard->entries[at].key) {
            larger.entries[place(&larger, shard->entries[at].key)] = shard->entries[at];
        }
    }
    if (shard->entries) {
        sys_unmap(shard->entries, shard->room * sizeof(struct entry));
    }
    shard->room = larger.room;
    shard->entries = larger.entries;
    return 0;
}

static void take_out(struct shard *shard, uint32_t hole) {
    uint32_t mask = shard->room - 1;
    for (uint32_t at = (hole + 1) & mask; shard->entries[at].key; at = (at + 1) & mask) {
        uint32_t wants = home(shard, shard->entries[at].key);
        if (((at - wants) & mask) >= ((at - hole) & mask)) {
            shard->entries[hole] = shard->entries[at];
            hole = at;
        }
    }
    shard->entries[hole].key = 0;
    shard->used--;
}

static struct entry *find(struct shard *shard, uint64_t key) {
    if (shard->used == 0 || key == 0) {
        return NULL;
    }
    uint32_t at = place(shard, key);
    return shard->entries[at].key ? &shard->entries[at] : NULL;
}

int table_put(struct table *table, const struct entry *entry) {
    struct shard *shard = shard_of(table, entry->key);
    int answer = 0;
    local_lock(&shard->lock);
    struct entry *found = find(shard, entry->key);
    if (found) {
        *found = *entry;
    } else if (guard_is_full() || ((shard->used + 1) * 4 > shard->room * 3 && grow(shard))) {
        answer = -1;
    } else {
        shard->entries[place(shard, entry->key)] = *entry;
        shard->used++;
    }
    local_unlock(&shard->lock);
    return answer;
}

int table_take(struct table *table, uint64_t key, struct entry *into) {
    struct shard *shard = shard_of(table, key);
    local_lock(&shard->lock);
    struct entry *found = find(shard, key);
    if (found) {
        *into = *found;
        take_out(shard, (uint32_t)(found - shard->entries));
    }
    local_unlock(&shard->lock);
    return found != NULL;
}

int table_count(struct table *table, uint64_t key, int by, struct entry *into) {
    struct shard *shard = shard_of(table, key);
    local_lock(&shard->lock);
    struct entry *found = find(shard, key);
    if (found) {
        found->count += (uint32_t)by;
        *into = *found;
    }
    local_unlock(&shard->lock);
    return found != NULL;
}

int table_find(struct table *table, uint64_t key, struct entry *into) {
    return table_count(table, key, 0, into);
}

static int any(struct table *table, int (*wanted)(const struct entry *, uint64_t),
               uint64_t argument, struct entry *into, int is_taken) {
    for (uint32_t index = 0; index < TABLE_SHARDS; index++) {
        struct shard *shard = &table->shards[index];
        local_lock(&shard->lock);
        for (uint32_t at = 0; shard->used && at < shard->room; at++) {
            if (shard->entries[at].key && wanted(&shard->entries[at], argument)) {
                *into = shard->entries[at];
                if (is_taken) {
                    take_out(shard, at);
                }
                local_unlock(&shard->lock);
                return 1;
            }
        }
        local_unlock(&shard->lock);
    }
    return 0;
}

int table_take_any(struct table *table, int (*wanted)(const struct entry *, uint64_t),
                   uint64_t argument, struct entry *into) {
    return any(table, wanted, argument, into, 1);
}

int table_find_any(struct table *table, int (*wanted)(const struct entry *, uint64_t),
                   uint64_t argument, struct entry *into) {
    return any(table, wanted, argument, into, 0);
}

void table_forget(struct table *table) {
    for (uint32_t index = 0; index < TABLE_SHARDS; index++) {
        table->shards[index] = (struct shard){0, 0, 0, NULL};
    }
}
