/* Runs parts of the guard under the sanitizers: `checked limits SEED COUNT` reads strange limits
 * files, `checked table THREADS COUNT` has threads put into and take out of one table.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limits.h"
#include "table.h"

static const char good[] =
    "version 1\n"
    "gpu GPU-00000000-0000-0000-0000-0000000000f1 limit_bytes 4509925376 core_percent 0 "
    "context_bytes 0\nregion /run/fairlead/gpu/region\n";

/* Cut, repeat and change bytes of a good file; the text ends where its memory ends. */
static int limits(unsigned int seed, int count) {
    struct limits into;
    int understood = 0;
    for (int at = 0; at < count; at++) {
        size_t size = sizeof good - 1;
        size_t most = size * 2;
        char *text = malloc(most);
        memcpy(text, good, size);
        for (int change = rand_r(&seed) % 4; change > 0; change--) {
            size_t place = (size_t)rand_r(&seed) % size;
            switch (rand_r(&seed) % 3) {
            case 0:
                text[place] = (char)rand_r(&seed);
                break;
            case 1:
                size = place + 1;
                break;
            default:
                if (size - place + size <= most) {
                    memmove(text + size, text + place, size - place);
                    size += size - place;
                }
            }
        }
        char *exact = malloc(size);
        memcpy(exact, text, size);
        understood += limits_parse(exact, size, &into) == 0;
        free(exact);
        free(text);
    }
    printf("understood %d\n", understood);
    return 0;
}

static struct table table;
static int turns;

static void *work(void *number) {
    uint64_t mine = (uint64_t)(uintptr_t)number;
    for (uint64_t at = 1; at <= (uint64_t)turns; at++) {
        struct entry entry = {at << 8 | mine, at, 0, 0, 0, 1}, found;
        table_put(&table, &entry);
        if (at % 3 && !table_take(&table, entry.key, &found)) {
            abort();
        }
    }
    return NULL;
}

static int is_any(const struct entry *entry, uint64_t none) {
    return (void)entry, (void)none, 1;
}

static int threads(int many) {
    pthread_t running[16];
    for (int at = 0; at < many; at++) {
        pthread_create(&running[at], NULL, work, (void *)(uintptr_t)at);
    }
    for (int at = 0; at < many; at++) {
        pthread_join(running[at], NULL);
    }
    uint64_t expected = 0;
    for (int at = 3; at <= turns; at += 3) {
        expected += (uint64_t)at * (uint64_t)many;
    }
    uint64_t sum = 0;
    struct entry entry;
    while (table_take_any(&table, is_any, 0, &entry)) {
        sum += entry.size;
    }
    printf("%s\n", sum == expected ? "right" : "wrong");
    return 0;
}

int main(int count, char **words) {
    if (count != 4) {
        return 2;
    }
    turns = atoi(words[3]);
    return strcmp(words[1], "limits") == 0 ? limits((unsigned int)atoi(words[2]), turns)
                                           : threads(atoi(words[2]));
}
