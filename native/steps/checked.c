/* Runs parts of the guard, under the sanitizers or instruction by instruction:
 *
 * `checked limits SEED COUNT` reads strange limits files, `checked region SEED COUNT` works in
 * regions of strange bytes, `checked table THREADS COUNT` and `checked account THREADS COUNT` have
 * threads share one table and one account, `checked killed SIZE LIMIT` looks, at each
 * instruction of a reservation and a release, at what its process would leave if it died there.
 * `checked dead COUNT LIVING` has COUNT processes die with a byte each, among others, and looks for them.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.h"
#include "process.h"
#include "region.h"
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

static struct region *new_region(void) {
    struct region *made =
        mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    made->magic = REGION_MAGIC, made->version = REGION_VERSION;
    return made;
}

static void enter(struct account *account, struct region *region) {
    memset(account, 0, sizeof *account);
    account->region = region;
    if (process_self(account) || region_enter(account)) {
        abort();
    }
}

/* Any word may be anything; what is granted stays within the limit all the same. */
static int regions(unsigned int seed, int count) {
    static const uint64_t limit = 1 << 20;
    struct region *region = new_region();
    int granted = 0;
    region_reserve_wait = region_release_wait = 1000;
    for (int at = 0; at < count; at++) {
        struct account account;
        uint64_t size = (uint64_t)rand_r(&seed) % (2 * limit);
        uint32_t gpu = (uint32_t)rand_r(&seed) % REGION_GPUS;
        memset(region, 0, REGION_BYTES);
        enter(&account, region);
        for (int change = rand_r(&seed) % 12; change > 0; change--) {
            uint64_t word = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 34);
            size_t places = change % 2 ? 200 : REGION_BYTES / sizeof word; /* the head more often */
            size_t place = (size_t)rand_r(&seed) % places;
            ((uint64_t *)region)[place] = change % 3 ? word : ~0ull;
        }
        if (region_reserve(&account, gpu, size, limit) == 0) {
            granted++;
            if (region->gpus[gpu].used > limit) {
                abort();
            }
        }
        region_release(&account, gpu, size);
        region_unknown(&account, 1 + gpu);
        region_reap(&account);
        region_leave(&account);
    }
    printf("granted %d\n", granted);
    return 0;
}

static struct account shared;
static const uint64_t room = 7;

static void *reserves(void *number) {
    uint64_t size = 1 + (uint64_t)(uintptr_t)number % 3;
    for (int at = 0; at < turns; at++) {
        while (region_reserve(&shared, 0, size, room)) {
        }
        region_release(&shared, 0, size);
    }
    return NULL;
}

static int is_any(const struct entry *entry, uint64_t none) {
    return (void)entry, (void)none, 1;
}

static void in_threads(int many, void *(*what)(void *)) {
    pthread_t running[16];
    for (int at = 0; at < many; at++) {
        pthread_create(&running[at], NULL, what, (void *)(uintptr_t)at);
    }
    for (int at = 0; at < many; at++) {
        pthread_join(running[at], NULL);
    }
}

static int account(int many) {
    enter(&shared, new_region());
    in_threads(many, reserves);
    const struct region_gpu *gpu = &shared.region->gpus[0];
    printf("%s\n", gpu->used == 0 && gpu->peak <= room ? "right" : "wrong");
    return 0;
}

static int tables(int many) {
    in_threads(many, work);
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

/* What a child does: `truth` is what a driver would have given it. */
static void victim(struct region *region, uint64_t size, uint64_t limit, volatile uint64_t *truth) {
    struct account mine;
    enter(&mine, region);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    if (region_reserve(&mine, 0, size, limit) == 0) {
        *truth = size;
        *truth = 0;
        region_release(&mine, 0, size);
    }
    _exit(0);
}

static void must(int holds, const char *what, int instruction) {
    if (!holds) {
        printf("instruction %d: %s\n", instruction, what);
        exit(1);
    }
}

static uint64_t child_identity;

static int child_is_dead(const struct account *account, const struct region_slot *slot) {
    return (void)account, slot->identity == child_identity;
}

/* What a process finds that comes after the death of the child: `region` is a copy. */
static void after_death(struct region *region, struct account other, uint64_t limit, int at) {
    const struct region_gpu *gpu = &region->gpus[0];
    uint64_t kept = region->slots[other.slot].bytes[0];
    other.region = region;
    region_judge = child_is_dead;
    must(region_reserve(&other, 0, limit - kept + 1, limit), "more than the limit", at);
    must(region_reserve(&other, 0, limit - kept, limit) == 0, "the share of a dead process", at);
    must(gpu->used == limit && region->slots[other.slot].bytes[0] == limit, "the sum", at);
    region_release(&other, 0, limit - kept);
    must(gpu->used == kept && (region->lock & 0xffe) == 0, "what is left", at);
    region_judge = process_is_dead;
}

static int killed(uint64_t size, uint64_t limit) {
    struct region *region = new_region(), *copy = new_region();
    uint64_t *truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const volatile struct region_gpu *gpu = &region->gpus[0];
    struct account other;
    int status, at = 0, locked = 0;
    region_reserve_wait = region_release_wait = 0;
    enter(&other, region);
    must(region_reserve(&other, 0, 1, limit) == 0, "the first request is refused", 0);
    pid_t child = fork();
    if (child == 0) {
        victim(region, size, limit, truth);
    }
    waitpid(child, &status, 0);
    child_identity = region->slots[other.slot + 1].identity;
    for (; WIFSTOPPED(status); at++) {
        must(1 + *truth <= gpu->used, "the driver gave more than is counted", at);
        must(gpu->used <= limit, "more is counted than the limit", at);
        memcpy(copy, region, REGION_BYTES);
        after_death(copy, other, limit, at);
        if (region->lock & 0xffe) {
            uint64_t before = gpu->used;
            locked++;
            must(region_reserve(&other, 0, 1, limit), "the lock of a stopped process is taken", at);
            must(gpu->used == before, "a refused request counts", at);
        }
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
        waitpid(child, &status, 0);
    }
    must(gpu->used == 1, "what the child gave back", at);
    printf("%d instructions, %d in the lock\n", at, locked);
    return 0;
}

static int judge_without_lock(const struct account *account, const struct region_slot *slot) {
    int is_dead = process_is_dead(account, slot);
    must(is_dead || (account->region->lock & 0xffe) == 0, "a living process is judged", -1);
    return is_dead;
}

static int dead(int many, int living) {
    struct account mine, of_child;
    int end[2], began[2];
    char one = 0;
    enter(&mine, new_region());
    if (pipe(end) || pipe(began)) {
        abort();
    }
    for (int at = 0; at < many + living; at++) {
        if (fork() == 0) {
            enter(&of_child, mine.region);
            int code = region_reserve(&of_child, 0, 1, UINT64_MAX);
            close(end[1]);
            if (at >= many && (write(began[1], &one, 1) != 1 || read(end[0], &one, 1))) {
                code = 1;
            }
            _exit(code);
        }
        if (at < many ? wait(NULL) <= 0 : read(began[0], &one, 1) != 1) {
            abort();
        }
    }
    const struct region_gpu *gpu = &mine.region->gpus[0];
    int looks = 0;
    region_judge = judge_without_lock;
    for (uint64_t before; gpu->used > (uint64_t)living; looks++) {
        before = gpu->used;
        region_reap(&mine);
        must(before - gpu->used <= REGION_JUDGED && looks < many, "a look", looks);
    }
    region_reap(&mine);
    printf("%d looks, %llu left\n", looks, (unsigned long long)gpu->used);
    close(end[1]);
    return 0;
}

int main(int count, char **words) {
    if (count != 4) {
        return 2;
    }
    int number = atoi(words[2]);
    turns = atoi(words[3]);
    return strcmp(words[1], "limits") == 0    ? limits((unsigned int)number, turns)
           : strcmp(words[1], "region") == 0  ? regions((unsigned int)number, turns)
           : strcmp(words[1], "account") == 0 ? account(number)
           : strcmp(words[1], "dead") == 0    ? dead(number, turns)
           : strcmp(words[1], "killed") == 0  ? killed((uint64_t)number, (uint64_t)turns)
                                              : tables(number);
}
