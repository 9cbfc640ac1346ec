/* A library that plays NVIDIA's: it reads what it shows from files in the directory that STUB_NVML names.

   `state`: lines `key value`, the last of a key counts. The library reads it at every call; a file whose last
   line is not `end` is still being written, so the previous contents stay. With STUB_NVML_STILL set it is read once.

     count                          cards
     <card>.<key>                   values of a card; of the MIG instance in slot n: <card>m<n>.<key>
     <card>.fv.<id>[.<scope>]       a field value: <type>:<value>, `unset` or error:<code>; none = not supported
     <card>.mig.<slot>              an instance: <gi>:<ci>:<uuid>:<profile>
     <card>[.gi<gi>].gpm.<metric>   a metric: <value>, `nan` or error:<code>
     <card>.samples                 <pid>:<microseconds>:<sm percent>,…
     error.<call>[.<card>]          an NVML code; `*` as call: every call of the card
     delay.<call>[.<card>]          milliseconds
     hang.<call>[.<card>]           the call returns when this row is gone

   Where FAIRLEAD_GPU_LOAD_DIR is set, a load generator sets the utilization and metrics that a card has.

   `events`: a line `<card> <xid>` for each, card -1 = no card; of another type: `<card> <data> <type>`, of a MIG
   instance `<card> <data> <type> <gi>`. `calls`: what was begun and ended; the library writes it.
   Structures and codes are those of NVIDIA's header. OLD leaves out what drivers before 510 do not have. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CARDS 64
#define SLOTS 8
#define ROWS 16384
#define XID_EVENT 0x8ULL
enum { OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, INSUFFICIENT_SIZE, TIMEOUT = 10, VERSION = 25 };

typedef unsigned long long ull;
typedef struct { int number, slot; char called[32]; } Card; /* slot -1 = the whole card */
typedef struct { ull total, free, used; } Memory;
typedef struct { unsigned version; ull total, reserved, free, used; } Memory2;
typedef struct { unsigned pid; ull used; unsigned instance, compute; } Process;
typedef struct { const char *cgroup; ull soft, hard; } SetLimits;
typedef struct { const char *cgroup; ull soft, hard, used; } GetLimits;
typedef struct { unsigned pid; ull stamp; unsigned sm, memory, encoder, decoder; } Sample;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef union { double d; unsigned ui; unsigned long ul; ull ll; long long sll; int si; unsigned short us; } Value;
typedef struct { unsigned id, scope; long long stamp, latency; int type, code; Value value; } FieldValue;
typedef struct { unsigned code, state; char info[128], product[128]; unsigned enabled; char expiry[16]; } License;
typedef struct { int is_supported; unsigned count; License features[3]; } Licenses;
typedef struct { const char *short_name, *long_name, *unit; } MetricInfo;
typedef struct { unsigned id; int code; double value; MetricInfo info; } Metric;
typedef struct { int card, instance; ull number; } GpmSample;
typedef struct { unsigned version, count; GpmSample *older, *newer; Metric metrics[]; } Question;
typedef struct { unsigned version, is_supported; } GpmSupport;
typedef struct { unsigned version; int degrees; } Margin;
typedef struct { unsigned version; ull counters[11]; unsigned is_over; } Sram;
typedef struct { unsigned version; unsigned char cluster[16]; int status; unsigned clique; unsigned char state; unsigned mask; unsigned char health; } Fabric;
typedef struct { Card *card; ull type, data; unsigned instance, compute; } Event;
typedef struct { ull registered[CARDS]; long read; } Events;
_Static_assert(sizeof(Memory) == 24 && sizeof(Memory2) == 40 && sizeof(Process) == 24 && sizeof(Event) == 32, "nvml.h");
_Static_assert(sizeof(FieldValue) == 40 && sizeof(Pci) == 68 && sizeof(Sample) == 32 && sizeof(Metric) == 40, "nvml.h");

static Card cards[CARDS], instances[CARDS][SLOTS];
static int begun, waiting;

static FILE *opened(const char *name, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("STUB_NVML"), name);
    return fopen(path, mode);
}

static void note(const char *what) {
    FILE *calls = opened("calls", "a");
    if (!calls) return;
    fprintf(calls, "%s\n", what);
    fclose(calls);
}

/* --- the state ----------------------------------------------------------------------------------------------- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char *file, *parsed; /* the last contents read; the same, cut into keys and values */
static size_t length;
static struct { const char *key, *value; int line; } rows[ROWS];
static int row_count, is_still;

static int compared(const void *one, const void *other) {
    const typeof(rows[0]) *a = one, *b = other;
    int order = strcmp(a->key, b->key);
    return order ? order : a->line - b->line;
}

static void parse(void) {
    char *rest = parsed, *line;
    row_count = 0;
    for (size_t at = 0; at < length; at++) parsed[at] = parsed[at] ? parsed[at] : '?';
    while ((line = strsep(&rest, "\n")) && row_count < ROWS) {
        char *value = strchr(line, ' ');
        if (!value) continue;
        *value = 0;
        rows[row_count].key = line;
        rows[row_count].value = value + 1;
        rows[row_count].line = row_count;
        row_count++;
    }
    qsort(rows, (size_t)row_count, sizeof rows[0], compared);
}

#define END "\nend\n"

/* Reads the state as it is now, if it is whole. */
static void refresh(void) {
    pthread_mutex_lock(&turn);
    FILE *state = is_still ? NULL : opened("state", "r");
    if (state) {
        size_t size = 0, room = 1 << 16;
        char *now = malloc(room);
        for (size_t got; (got = fread(now + size, 1, room - size - 1, state)); size += got)
            if (room - size - got < 4096) now = realloc(now, room *= 2);
        fclose(state);
        now[size] = 0;
        size_t tail = strlen(END);
        if (size >= tail && !memcmp(now + size - tail, END, tail) && (size != length || memcmp(now, file, size))) {
            free(file);
            free(parsed);
            file = now;
            length = size;
            parsed = memcpy(malloc(size + 1), now, size + 1);
            parse();
            is_still = !!getenv("STUB_NVML_STILL");
        } else free(now);
    }
    pthread_mutex_unlock(&turn);
}

/* The value of a key, or `without`; valid until the thread's eighth call after this one. */
static const char *text(const char *key, const char *without) {
    static __thread char values[8][8192];
    static __thread int next;
    const char *found = without;
    pthread_mutex_lock(&turn);
    int from = 0, to = row_count;
    while (from < to) { /* the first row after the key's */
        int middle = (from + to) / 2;
        if (strcmp(rows[middle].key, key) > 0) to = middle;
        else from = middle + 1;
    }
    if (from && !strcmp(rows[from - 1].key, key)) {
        found = values[next = (next + 1) % 8];
        snprintf(values[next], sizeof values[next], "%s", rows[from - 1].value);
    }
    pthread_mutex_unlock(&turn);
    return found;
}

/* --- loads of a generator that has no card (src/fairlead/wire/gpus/simulated_load.py) --------------------------- */

static const struct { const char *key; int field; } TOLD[] = {
    {"gpu", 1001}, {"memory", 1005}, {"gpm.1", 1001}, {"gpm.2", 1002}, {"gpm.3", 1003}, {"gpm.5", 1004},
    {"gpm.10", 1005}, {"gpm.11", 1006}, {"gpm.12", 1007}, {"gpm.13", 1008},
};

static int is_gone(int pid, const char *whose) {
    char mine[64] = "";
    ssize_t size = readlink("/proc/self/ns/pid", mine, sizeof mine - 1);
    return size > 0 && !strcmp(mine, whose) && kill(pid, 0) && errno == ESRCH;
}

/* The ratio of a field in one file, for this card; negative = the file has no current value. */
static double told_in(FILE *load, const char *card, const char *uuid, int field) {
    char line[4096], whose[64] = "";
    double until = 0, ratio = -1;
    int pid = 0, is_meant = 1;
    while (fgets(line, sizeof line, load)) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, ' ');
        if (!value) continue;
        *value++ = 0;
        if (!strcmp(line, "until")) until = strtod(value, NULL);
        else if (!strcmp(line, "pid")) pid = atoi(value);
        else if (!strcmp(line, "pid_namespace")) snprintf(whose, sizeof whose, "%s", value);
        else if (!strcmp(line, "gpus")) {
            is_meant = 0;
            for (char *rest = value, *gpu; (gpu = strsep(&rest, ","));) is_meant |= !strcmp(gpu, card) || !strcmp(gpu, uuid);
        } else if (atoi(line) == field) ratio = strtod(value, NULL);
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return is_meant && (double)now.tv_sec + (double)now.tv_nsec / 1e9 < until && !is_gone(pid, whose) ? ratio : -1;
}

static const char *told(const char *card, const char *uuid, const char *key, const char *without) {
    static __thread char values[8][32];
    static __thread int next;
    const char *folder = getenv("FAIRLEAD_GPU_LOAD_DIR");
    int field = 0;
    for (size_t n = 0; n < sizeof TOLD / sizeof TOLD[0]; n++)
        if (!strcmp(TOLD[n].key, key)) field = TOLD[n].field;
    DIR *loads = folder && field ? opendir(folder) : NULL;
    if (!loads) return without;
    double most = -1;
    for (struct dirent *entry; (entry = readdir(loads));) {
        size_t size = strlen(entry->d_name);
        char path[8192];
        if (size < 5 || strcmp(entry->d_name + size - 5, ".load")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *load = fopen(path, "r");
        if (!load) continue;
        double ratio = told_in(load, card, uuid, field);
        if (ratio > most) most = ratio;
        fclose(load);
    }
    closedir(loads);
    if (most < 0) return without;
    next = (next + 1) % 8;
    snprintf(values[next], sizeof values[next], strchr(key, '.') ? "%.4f" : "%.0f", 100 * most);
    return values[next];
}

static const char *of_card(const Card *card, const char *key, const char *without) {
    char whole[256], uuid[256];
    snprintf(whole, sizeof whole, "%s.%s", card->called, key);
    const char *found = text(whole, NULL);
    if (!found) return without;
    snprintf(uuid, sizeof uuid, "%s.uuid", card->called);
    return told(card->called, text(uuid, ""), key, found);
}

static ull number(const char *value) { return strtoull(value, NULL, 0); }

/* What a call has to do by this kind of row: for all cards, for this card, for every call of this card. */
static ull ordered(const char *kind, const char *call, const char *card) {
    char key[256];
    snprintf(key, sizeof key, "%s.%s", kind, call);
    const char *found = text(key, NULL);
    if (!found && card) {
        snprintf(key, sizeof key, "%s.%s.%s", kind, call, card);
        found = text(key, NULL);
    }
    if (!found && card) {
        snprintf(key, sizeof key, "%s.*.%s", kind, card);
        found = text(key, NULL);
    }
    return number(found ? found : "0");
}

static int error(const char *call, const char *card) {
    refresh();
    if (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST) && strcmp(call, "nvmlInitWithFlags")) return UNINITIALIZED;
    usleep((useconds_t)ordered("delay", call, card) * 1000);
    if (ordered("hang", call, card)) note("hangs");
    while (ordered("hang", call, card)) {
        usleep(2000);
        refresh();
    }
    return (int)ordered("error", call, card);
}

static int part(const Card *card, int wanted, char *into, size_t room);

#define FAIL(card) do { int code = error(__func__, card); if (code) return code; } while (0)

int nvmlInitWithFlags(unsigned flags) {
    FAIL(NULL);
    if (!(flags & 1) && !number(text("count", "0"))) return 6; /* without GPUs only with the flag NO_GPUS */
    for (int n = 0; n < CARDS; n++) {
        cards[n] = (Card){.number = n, .slot = -1};
        snprintf(cards[n].called, sizeof cards[n].called, "%d", n);
        for (int slot = 0; slot < SLOTS; slot++) {
            instances[n][slot] = (Card){.number = n, .slot = slot};
            snprintf(instances[n][slot].called, sizeof instances[n][slot].called, "%dm%d", n, slot);
        }
    }
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    note("init");
    return OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    if (!begun) return UNINITIALIZED;
    __atomic_sub_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    note(__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) ? "shutdown while somebody waits" : "shutdown");
    return OK;
}

const char *nvmlErrorString(int code) { return code == 1234 ? "a new kind of trouble" : "?"; }

/* A number of a card from the state; a card without the row does not support it. */
static int figure(const Card *card, const char *key, ull *into) {
    const char *found = of_card(card, key, NULL);
    if (!found) return NOT_SUPPORTED;
    *into = number(found);
    return OK;
}

#define FIGURE(type, name, key) int name(Card *card, type *into) { \
    FAIL(card->called); ull value = 0; int code = figure(card, key, &value); if (!code) *into = (type)value; return code; }
#define CHOSEN(name, key) int name(Card *card, unsigned which, unsigned *into) { \
    FAIL(card->called); char whole[64]; snprintf(whole, sizeof whole, "%s.%u", key, which); \
    ull value = 0; int code = figure(card, whole, &value); if (!code) *into = (unsigned)value; return code; }
#define PAIR(name, first, second) int name(Card *card, unsigned *one, unsigned *other) { \
    FAIL(card->called); ull a = 0, b = 0; int code = figure(card, first, &a); if (code) return code; \
    figure(card, second, &b); *one = (unsigned)a; *other = (unsigned)b; return OK; }
#define WORDS(name, key) int name(Card *card, char *into, unsigned room) { \
    FAIL(card->called); const char *found = of_card(card, key, NULL); if (!found) return NOT_SUPPORTED; \
    return snprintf(into, room, "%s", found) < (int)room ? OK : INSUFFICIENT_SIZE; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    FAIL(NULL);
    *count = (unsigned)number(text("count", "0"));
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Card **card) {
    if (index >= CARDS) return INVALID_ARGUMENT;
    FAIL(cards[index].called);
    *card = &cards[index];
    return OK;
}

/* `<card>.peer.<index>`: what is on the way to that card; a card without the row does not support it. */
int nvmlDeviceGetP2PStatus(Card *card, Card *other, int which, int *status) {
    FAIL(card->called);
    char key[64];
    ull value = 0;
    snprintf(key, sizeof key, "peer.%d", other->number);
    int code = which == 2 ? figure(card, key, &value) : INVALID_ARGUMENT;
    if (!code) *status = (int)value;
    return code;
}

int nvmlDeviceGetUUID(Card *card, char *uuid, unsigned length) {
    FAIL(card->called);
    if (card->slot >= 0) return part(card, 2, uuid, length);
    snprintf(uuid, length, "%s", of_card(card, "uuid", ""));
    return OK;
}

int nvmlDeviceGetName(Card *card, char *name, unsigned length) {
    FAIL(card->called);
    char profile[64];
    const char *whole = of_card(&cards[card->number], "name", "Tesla T4");
    if (part(card, 3, profile, sizeof profile)) snprintf(name, length, "%s", whole);
    else snprintf(name, length, "%s MIG %s", whole, profile);
    return OK;
}

int nvmlDeviceGetMinorNumber(Card *card, unsigned *minor) {
    FAIL(card->called);
    *minor = (unsigned)number(of_card(card, "minor", "0"));
    return OK;
}

int nvmlDeviceGetMemoryInfo(Card *card, Memory *memory) {
    FAIL(card->called);
    memset(memory, 0, sizeof *memory);
    memory->total = number(of_card(card, "total", "0"));
    memory->used = number(of_card(card, "used", "0")) + number(of_card(card, "reserved", "0"));
    memory->free = memory->total - memory->used;
    return OK;
}

int nvmlDeviceGetTemperature(Card *card, int sensor, unsigned *degrees) {
    FAIL(card->called);
    *degrees = sensor ? 0 : (unsigned)number(of_card(card, "temperature", "40"));
    return OK;
}

int nvmlDeviceGetMigMode(Card *card, unsigned *now, unsigned *pending) {
    FAIL(card->called);
    *now = (unsigned)number(of_card(card, "mig", "0"));
    *pending = (unsigned)number(of_card(card, "mig-pending", "0"));
    return OK;
}

/* `<card>.<kind> <pid>:<bytes>,…` */
static int listed(Card *card, const char *kind, unsigned *count, Process *into) {
    char line[8192], *row, *rest = line;
    Process found[256];
    unsigned total = 0;
    snprintf(line, sizeof line, "%s", of_card(card, kind, ""));
    while (total < 256 && (row = strsep(&rest, ",")) && strchr(row, ':')) {
        memset(&found[total], 0, sizeof(Process));
        found[total].instance = found[total].compute = ~0u;
        found[total].pid = (unsigned)number(row);
        found[total++].used = number(strchr(row, ':') + 1);
    }
    unsigned room = *count;
    *count = total;
    if (total > room) return INSUFFICIENT_SIZE;
    if (into) memcpy(into, found, total * sizeof(Process));
    return OK;
}

#define LIST(name, kind) int name(Card *card, unsigned *count, Process *into) { FAIL(card->called); return listed(card, kind, count, into); }
LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
#ifndef OLD
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

int nvmlDeviceGetMemoryInfo_v2(Card *card, Memory2 *memory) {
    FAIL(card->called);
    if (memory->version != (sizeof *memory | 2 << 24)) return 25;
    memory->total = number(of_card(card, "total", "0"));
    memory->reserved = number(of_card(card, "reserved", "0"));
    memory->used = number(of_card(card, "used", "0"));
    memory->free = memory->total - memory->used - memory->reserved;
    return OK;
}

/* Limits by cgroup: the file `gpu-limits-<card>` in the cgroup's own folder, so they go with it. */
static int limits_file(Card *card, const char *cgroup, char *path, size_t room) {
    snprintf(path, room, "%s/cgroup.procs", cgroup);
    if (access(path, F_OK)) return 17; /* OPERATING_SYSTEM */
    snprintf(path, room, "%s/gpu-limits-%d", cgroup, card->number);
    return card->slot >= 0 || number(of_card(card, "mig", "0")) ? NOT_SUPPORTED : OK;
}

int nvmlDeviceSetMemoryLimits_v1(Card *card, SetLimits *limits) {
    FAIL(card->called);
    char path[4096];
    int code = limits_file(card, limits->cgroup, path, sizeof path);
    if (code) return code;
    if (limits->soft == 0 && limits->hard == ~0ULL) return unlink(path), OK;
    if (limits->soft > limits->hard || limits->hard > number(of_card(card, "total", "0"))) return INVALID_ARGUMENT;
    FILE *file = fopen(path, "w");
    fprintf(file, "%llu %llu", limits->soft, limits->hard);
    return fclose(file), OK;
}

int nvmlDeviceGetMemoryLimits_v1(Card *card, GetLimits *limits) {
    FAIL(card->called);
    char path[4096];
    int code = limits_file(card, limits->cgroup, path, sizeof path);
    FILE *file = code ? NULL : fopen(path, "r");
    if (!file) return code ? code : NOT_FOUND;
    int read = fscanf(file, "%llu %llu", &limits->soft, &limits->hard);
    limits->used = number(of_card(card, "used", "0"));
    return fclose(file), read == 2 ? OK : INVALID_ARGUMENT;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    FAIL(NULL);
    *version = (int)number(text("cuda", "13040"));
    return OK;
}

FIGURE(ull, nvmlDeviceGetCurrentClocksEventReasons, "reasons")

/* --- profiling: what happened between two samples -------------------------------------------------------------- */

int nvmlGpmQueryDeviceSupport(Card *card, GpmSupport *support) {
    FAIL(card->called);
    if (support->version != 1) return VERSION;
    support->is_supported = (unsigned)number(of_card(card, "gpm", "0"));
    return OK;
}

static ull samples;

int nvmlGpmSampleAlloc(GpmSample **sample) {
    FAIL(NULL);
    *sample = calloc(1, sizeof **sample);
    (*sample)->card = -1;
    note("sample");
    return OK;
}

int nvmlGpmSampleFree(GpmSample *sample) {
    FAIL(NULL);
    free(sample);
    note("sample freed");
    return OK;
}

static int taken(Card *card, int instance, GpmSample *sample) {
    if (!number(of_card(card, "gpm", "0"))) return NOT_SUPPORTED;
    sample->card = card->number;
    sample->instance = instance;
    sample->number = __atomic_add_fetch(&samples, 1, __ATOMIC_SEQ_CST);
    return OK;
}

int nvmlGpmSampleGet(Card *card, GpmSample *sample) {
    FAIL(card->called);
    return taken(card, -1, sample);
}

int nvmlGpmMigSampleGet(Card *card, unsigned instance, GpmSample *sample) {
    FAIL(card->called);
    return taken(card, (int)instance, sample);
}

int nvmlGpmMetricsGet(Question *question) {
    if (question->version != 1) return VERSION;
    GpmSample *older = question->older, *newer = question->newer;
    if (!older || !newer || older->card < 0 || older->card != newer->card || older->instance != newer->instance) return INVALID_ARGUMENT;
    if (older->number >= newer->number) return INVALID_ARGUMENT;
    Card *card = &cards[newer->card];
    FAIL(card->called);
    for (unsigned n = 0; n < question->count; n++) {
        Metric *metric = &question->metrics[n];
        char key[64];
        if (newer->instance < 0) snprintf(key, sizeof key, "gpm.%u", metric->id);
        else snprintf(key, sizeof key, "gi%d.gpm.%u", newer->instance, metric->id);
        const char *found = of_card(card, key, "error:3");
        metric->code = strncmp(found, "error:", 6) ? OK : atoi(found + 6);
        metric->value = metric->code ? 0 : strtod(found, NULL);
        metric->info = (MetricInfo){"metric", "a metric", "%"};
    }
    return OK;
}
#endif

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    FAIL(NULL);
    snprintf(version, length, "%s", text("driver", "615.71.05"));
    return OK;
}

int nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    FAIL(NULL);
    snprintf(version, length, "%s", text("nvml", "13.615.71.05"));
    return OK;
}

/* --- figures of a card ------------------------------------------------------------------------------------------ */

int nvmlDeviceGetUtilizationRates(Card *card, Utilization *utilization) {
    FAIL(card->called);
    ull gpu = 0, memory = 0;
    int code = figure(card, "gpu", &gpu);
    if (code) return code;
    figure(card, "memory", &memory);
    *utilization = (Utilization){(unsigned)gpu, (unsigned)memory};
    return OK;
}

PAIR(nvmlDeviceGetEncoderUtilization, "encoder", "period")
PAIR(nvmlDeviceGetDecoderUtilization, "decoder", "period")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "limit-min", "limit-max")
PAIR(nvmlDeviceGetEccMode, "ecc", "ecc-pending")
CHOSEN(nvmlDeviceGetClockInfo, "clock")
CHOSEN(nvmlDeviceGetMaxClockInfo, "max-clock")
CHOSEN(nvmlDeviceGetTemperatureThreshold, "threshold")
CHOSEN(nvmlDeviceGetPcieThroughput, "pcie-throughput")
FIGURE(ull, nvmlDeviceGetCurrentClocksThrottleReasons, "reasons")
FIGURE(ull, nvmlDeviceGetTotalEnergyConsumption, "energy")
FIGURE(unsigned, nvmlDeviceGetPowerUsage, "power")
FIGURE(unsigned, nvmlDeviceGetPowerManagementLimit, "limit")
FIGURE(unsigned, nvmlDeviceGetPowerManagementDefaultLimit, "limit-default")
FIGURE(unsigned, nvmlDeviceGetEnforcedPowerLimit, "limit-enforced")
FIGURE(unsigned, nvmlDeviceGetPerformanceState, "pstate")
FIGURE(unsigned, nvmlDeviceGetFanSpeed, "fan")
FIGURE(unsigned, nvmlDeviceGetPcieReplayCounter, "replays")
FIGURE(unsigned, nvmlDeviceGetCurrPcieLinkGeneration, "link-gen")
FIGURE(unsigned, nvmlDeviceGetCurrPcieLinkWidth, "link-width")
FIGURE(unsigned, nvmlDeviceGetMaxPcieLinkGeneration, "max-link-gen")
FIGURE(unsigned, nvmlDeviceGetMaxPcieLinkWidth, "max-link-width")
FIGURE(unsigned, nvmlDeviceGetBrand, "brand")
FIGURE(unsigned, nvmlDeviceGetIndex, "index")
FIGURE(unsigned, nvmlDeviceGetPersistenceMode, "persistence")

/* The mode that was set, until the library is loaded again; before that the row `compute-mode`. */
static unsigned compute_mode[CARDS]; /* + 1 */

int nvmlDeviceGetComputeMode(Card *card, unsigned *into) {
    FAIL(card->called);
    ull value = 0;
    int code = figure(card, "compute-mode", &value);
    if (compute_mode[card->number]) *into = compute_mode[card->number] - 1;
    else if (!code) *into = (unsigned)value;
    return compute_mode[card->number] ? OK : code;
}

int nvmlDeviceSetComputeMode(Card *card, unsigned mode) {
    FAIL(card->called);
    char called[64];
    snprintf(called, sizeof called, "compute mode %d %u", card->number, mode);
    note(called);
    compute_mode[card->number] = mode + 1;
    return OK;
}
FIGURE(unsigned, nvmlDeviceGetVirtualizationMode, "virtualization")
FIGURE(unsigned, nvmlDeviceGetInforomConfigurationChecksum, "inforom-checksum")
PAIR(nvmlDeviceGetAutoBoostedClocksEnabled, "autoboost", "autoboost-default")
PAIR(nvmlDeviceGetCudaComputeCapability, "capability-major", "capability-minor")
CHOSEN(nvmlDeviceGetApplicationsClock, "app-clock")
WORDS(nvmlDeviceGetSerial, "serial")
WORDS(nvmlDeviceGetVbiosVersion, "vbios")
WORDS(nvmlDeviceGetInforomImageVersion, "inforom-image")

/* Structures that begin with their size and version. */
#define VERSIONED(type, name, number, member, key) int name(Card *card, type *into) { \
    FAIL(card->called); if (into->version != (sizeof *into | (unsigned)(number) << 24)) return VERSION; \
    ull value = 0; int code = figure(card, key, &value); if (!code) into->member = value; return code; }
VERSIONED(Margin, nvmlDeviceGetMarginTemperature, 1, degrees, "margin")
VERSIONED(Sram, nvmlDeviceGetSramEccErrorStatus, 1, is_over, "sram-over")

int nvmlDeviceGetRowRemapperHistogram(Card *card, unsigned *into) {
    static const char *keys[] = {"banks-max", "banks-high", "banks-partial", "banks-low", "banks-none"};
    FAIL(card->called);
    ull value = 0;
    int code = figure(card, keys[0], &value);
    for (int n = 0; !code && n < 5; n++) {
        value = 0;
        figure(card, keys[n], &value);
        into[n] = (unsigned)value;
    }
    return code;
}

int nvmlDeviceGetGpuFabricInfoV(Card *card, Fabric *into) {
    FAIL(card->called);
    if (into->version != (sizeof *into | 3u << 24)) return VERSION;
    ull state = 0, status = 0, clique = 0, mask = 0, health = 0;
    int code = figure(card, "fabric-state", &state);
    if (code) return code;
    figure(card, "fabric-status", &status);
    figure(card, "fabric-clique", &clique);
    figure(card, "fabric-mask", &mask);
    figure(card, "fabric-health", &health);
    into->status = (int)status;
    into->clique = (unsigned)clique;
    into->state = (unsigned char)state;
    into->mask = (unsigned)mask;
    into->health = (unsigned char)health;
    return OK;
}

int nvmlDeviceGetMemoryErrorCounter(Card *card, int type, int counter, int place, ull *into) {
    FAIL(card->called);
    char key[64];
    snprintf(key, sizeof key, "errors.%d.%d.%d", type, counter, place);
    return figure(card, key, into);
}

int nvmlDeviceGetInforomVersion(Card *card, unsigned object, char *into, unsigned room) {
    FAIL(card->called);
    char key[32];
    snprintf(key, sizeof key, "inforom.%u", object);
    const char *found = of_card(card, key, NULL);
    if (!found) return NOT_SUPPORTED;
    snprintf(into, room, "%s", found);
    return OK;
}

int nvmlDeviceGetPciInfo_v3(Card *card, Pci *pci) {
    FAIL(card->called);
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", of_card(card, "bus", "00000000:07:00.0"));
    pci->id = (unsigned)number(of_card(card, "pci-id", "0x1EB810DE"));
    pci->subsystem = (unsigned)number(of_card(card, "pci-subsystem", "0x12A210DE"));
    return OK;
}

int nvmlDeviceGetBAR1MemoryInfo(Card *card, Memory *memory) {
    FAIL(card->called);
    ull used = 0;
    int code = figure(card, "bar1", &memory->total);
    if (code) return code;
    figure(card, "bar1-used", &used);
    memory->used = used;
    memory->free = memory->total - used;
    return OK;
}

int nvmlDeviceGetGridLicensableFeatures_v4(Card *card, Licenses *licenses) {
    FAIL(card->called);
    memset(licenses, 0, sizeof *licenses);
    licenses->features[0].state = (unsigned)number(of_card(card, "license", "0"));
    licenses->is_supported = licenses->count = licenses->features[0].state > 0;
    return OK;
}

int nvmlDeviceGetFieldValues(Card *card, int count, FieldValue *values) {
    FAIL(card->called);
    char line[64];
    snprintf(line, sizeof line, "%d field values of %s", count, card->called);
    if (number(text("note-fields", "0"))) note(line);
    for (FieldValue *each = values; each < values + count; each++) {
        char key[64];
        if (each->scope) snprintf(key, sizeof key, "fv.%u.%u", each->id, each->scope);
        else snprintf(key, sizeof key, "fv.%u", each->id);
        const char *found = of_card(card, key, "error:3"), *value = strchr(found, ':');
        each->stamp = each->latency = 0;
        each->type = each->code = 0;
        memset(&each->value, 0, sizeof each->value);
        if (!strncmp(found, "error:", 6)) each->code = atoi(found + 6);
        else if (value) {
            each->type = atoi(found);
            if (each->id == 82) each->value.ui = (unsigned)number(value + 1); /* the driver does not set the type of this value */
            else
            if (each->type == 0) each->value.d = strtod(value + 1, NULL);
            else if (each->type == 1) each->value.ui = (unsigned)number(value + 1);
            else if (each->type == 5) each->value.si = atoi(value + 1);
            else if (each->type == 6) each->value.us = (unsigned short)number(value + 1);
            else each->value.ll = number(value + 1);
        } /* else unset: a success of type 0 */
    }
    return OK;
}

/* Samples that are newer than `since`. */
int nvmlDeviceGetProcessUtilization(Card *card, Sample *into, unsigned *count, ull since) {
    FAIL(card->called);
    if (card->slot >= 0) return NOT_SUPPORTED;
    if (!since) note("utilization since 0");
    const char *told = of_card(card, "samples", NULL);
    if (!told) return NOT_SUPPORTED;
    char line[8192], *row, *rest = line;
    Sample found[256];
    unsigned total = 0;
    snprintf(line, sizeof line, "%s", told);
    while (total < 256 && (row = strsep(&rest, ","))) {
        Sample one = {0};
        int told = sscanf(row, "%u:%llu:%u:%u:%u:%u", &one.pid, &one.stamp, &one.sm, &one.memory, &one.encoder, &one.decoder);
        if (told >= 3 && one.stamp > since) found[total++] = one;
    }
    if (!total) return NOT_FOUND;
    unsigned room = *count;
    *count = total;
    if (!into || room < total) return INSUFFICIENT_SIZE;
    memcpy(into, found, total * sizeof *found);
    return OK;
}

/* --- MIG instances ---------------------------------------------------------------------------------------------- */

int nvmlDeviceGetMaxMigDeviceCount(Card *card, unsigned *count) {
    FAIL(card->called);
    note("instances are asked for");
    *count = SLOTS - 1;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Card *card, unsigned slot, Card **instance) {
    FAIL(card->called);
    char key[32];
    snprintf(key, sizeof key, "mig.%u", slot);
    if (slot >= SLOTS || !of_card(card, key, NULL)) return NOT_FOUND;
    *instance = &instances[card->number][slot];
    return OK;
}

/* <gi>:<ci>:<uuid>:<profile> */
static int part(const Card *card, int wanted, char *into, size_t room) {
    char key[32], line[512], *rest = line, *found = NULL;
    if (card->slot < 0) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "mig.%d", card->slot);
    snprintf(line, sizeof line, "%s", of_card(&cards[card->number], key, ""));
    for (int n = 0; n <= wanted; n++) found = strsep(&rest, ":");
    if (!found) return NOT_FOUND;
    snprintf(into, room, "%s", found);
    return OK;
}

static int numbered(const Card *card, int wanted, unsigned *into) {
    char found[512];
    int code = part(card, wanted, found, sizeof found);
    if (!code) *into = (unsigned)number(found);
    return code;
}

int nvmlDeviceGetGpuInstanceId(Card *card, unsigned *id) {
    FAIL(card->called);
    return numbered(card, 0, id);
}

int nvmlDeviceGetComputeInstanceId(Card *card, unsigned *id) {
    FAIL(card->called);
    return numbered(card, 1, id);
}

int nvmlEventSetCreate(Events **set) {
    FAIL(NULL);
    *set = calloc(1, sizeof **set);
    FILE *events = opened("events", "r"); /* events that were reported before belong to no listener */
    if (events) {
        fseek(events, 0, SEEK_END);
        (*set)->read = ftell(events);
        fclose(events);
    }
    note("set");
    return OK;
}

int nvmlEventSetFree(Events *set) {
    note(__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) ? "free while somebody waits" : "free");
    free(set);
    return OK;
}

int nvmlDeviceGetSupportedEventTypes(Card *card, ull *types) {
    FAIL(card->called);
    *types = number(of_card(card, "event-types", "0x8"));
    return OK;
}

int nvmlDeviceRegisterEvents(Card *card, ull types, Events *set) {
    FAIL(card->called);
    if (types & ~number(of_card(card, "event-types", "0x8"))) return INVALID_ARGUMENT;
    set->registered[card->number] = types;
    note("register");
    return OK;
}

static int heard(Events *set, Event *event) {
    int card, found = 0;
    unsigned instance;
    ull data, type;
    char line[128];
    FILE *events = opened("events", "r");
    if (!events) return 0;
    fseek(events, set->read, SEEK_SET);
    while (!found && fgets(line, sizeof line, events) && strchr(line, '\n')) {
        type = XID_EVENT;
        instance = ~0u;
        if (sscanf(line, "%d %llu %llu %u", &card, &data, &type, &instance) < 2) break;
        set->read = ftell(events);
        memset(event, 0, sizeof *event);
        event->card = card < 0 ? NULL : &cards[card];
        event->type = type;
        event->data = data;
        event->instance = instance;
        event->compute = ~0u;
        found = card < 0 || set->registered[card] & type;
    }
    fclose(events);
    if (found) note("heard");
    return found;
}

static int waited(Events *set, Event *event, unsigned milliseconds) {
    for (unsigned spent = 0;; spent += 5) {
        int code = error("nvmlEventSetWait_v2", NULL);
        if (code) return code;
        if (heard(set, event)) return OK;
        if (spent >= milliseconds || spent >= number(text("longest-wait", "10"))) return TIMEOUT;
        do { usleep(5000); refresh(); } while (number(text("hang", "0")));
    }
}

int nvmlEventSetWait_v2(Events *set, Event *event, unsigned milliseconds) {
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    int code = waited(set, event, milliseconds);
    __atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    return code;
}
