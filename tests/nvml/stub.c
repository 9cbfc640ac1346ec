/* A library that plays NVIDIA's: what it shows stands in files of the directory that STUB_NVML names.

   `state`: lines `key value`, read at every call: `count`, `<card>.uuid`, `<card>.total`, `error.<call>` and
   `error.<call>.<card>` (an NVML code). `events`: a line `<card> <xid>` for each, card -1 = of none. `calls`: what
   was begun and ended, written here. Structures and codes are those of NVIDIA's header. OLD leaves out what
   drivers before 510 do not have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CARDS 64
#define XID_EVENT 0x8ULL
enum { OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, INSUFFICIENT_SIZE = 7, TIMEOUT = 10 };

typedef struct { int number; } Card;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;
typedef struct { Card *card; unsigned long long type, data; unsigned instance, compute; } Event;
typedef struct { char is_registered[CARDS]; long read; } Events;
_Static_assert(sizeof(Memory) == 24 && sizeof(Memory2) == 40 && sizeof(Process) == 24 && sizeof(Event) == 32, "nvml.h");

static Card cards[CARDS];
static int begun, waiting;

static FILE *opened(const char *name, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("STUB_NVML"), name);
    return fopen(path, mode);
}

static void note(const char *what) {
    FILE *calls = opened("calls", "a");
    fprintf(calls, "%s\n", what);
    fclose(calls);
}

/* The value of a key, else what stands for it. */
static const char *text(const char *key, const char *without) {
    static __thread char value[4096];
    char line[4096];
    size_t length = strlen(key);
    FILE *state = opened("state", "r");
    const char *found = without;
    while (state && fgets(line, sizeof line, state))
        if (!strncmp(line, key, length) && line[length] == ' ') {
            strcpy(value, line + length + 1);
            value[strcspn(value, "\n")] = 0;
            found = value;
        }
    if (state) fclose(state);
    return found;
}

static const char *of_card(int card, const char *key, const char *without) {
    char whole[256];
    snprintf(whole, sizeof whole, "%d.%s", card, key);
    return text(whole, without);
}

static unsigned long long number(const char *value) { return strtoull(value, NULL, 0); }

static int error(const char *call, int card) {
    char key[256];
    if (!begun && strcmp(call, "nvmlInitWithFlags")) return UNINITIALIZED;
    snprintf(key, sizeof key, "error.%s", call);
    int every = (int)number(text(key, "0"));
    if (every || card < 0) return every;
    snprintf(key, sizeof key, "error.%s.%d", call, card);
    return (int)number(text(key, "0"));
}

#define FAIL(card) do { int code = error(__func__, card); if (code) return code; } while (0)

int nvmlInitWithFlags(unsigned flags) {
    FAIL(-1);
    if (!(flags & 1) && !number(text("count", "0"))) return 6; /* without GPUs only for who says NO_GPUS */
    for (int n = 0; n < CARDS; n++) cards[n].number = n;
    begun++;
    note("init");
    return OK;
}

int nvmlShutdown(void) {
    if (!begun) return UNINITIALIZED;
    begun--;
    note(__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) ? "shutdown while somebody waits" : "shutdown");
    return OK;
}

const char *nvmlErrorString(int code) { return code == 1234 ? "a new kind of trouble" : "?"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    FAIL(-1);
    *count = (unsigned)number(text("count", "0"));
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Card **card) {
    FAIL((int)index);
    *card = &cards[index];
    return OK;
}

int nvmlDeviceGetUUID(Card *card, char *uuid, unsigned length) {
    FAIL(card->number);
    snprintf(uuid, length, "%s", of_card(card->number, "uuid", ""));
    return OK;
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };

int nvmlDeviceGetPciInfo_v3(Card *card, struct pci *pci) {
    FAIL(card->number);
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", of_card(card->number, "bus", "00000000:07:00.0"));
    return OK;
}

int nvmlDeviceGetName(Card *card, char *name, unsigned length) {
    FAIL(card->number);
    snprintf(name, length, "%s", of_card(card->number, "name", "Tesla T4"));
    return OK;
}

int nvmlDeviceGetMinorNumber(Card *card, unsigned *minor) {
    FAIL(card->number);
    *minor = (unsigned)number(of_card(card->number, "minor", "0"));
    return OK;
}

int nvmlDeviceGetMemoryInfo(Card *card, Memory *memory) {
    FAIL(card->number);
    memset(memory, 0, sizeof *memory);
    memory->total = number(of_card(card->number, "total", "0"));
    return OK;
}

int nvmlDeviceGetTemperature(Card *card, int sensor, unsigned *degrees) {
    FAIL(card->number);
    *degrees = sensor ? 0 : 40;
    return OK;
}

int nvmlDeviceGetMigMode(Card *card, unsigned *now, unsigned *pending) {
    FAIL(card->number);
    *now = (unsigned)number(of_card(card->number, "mig", "0"));
    *pending = (unsigned)number(of_card(card->number, "mig-pending", "0"));
    return OK;
}

/* `<card>.<kind> <pid>:<bytes>,…` */
static int listed(Card *card, const char *kind, unsigned *count, Process *into) {
    char rows[4096], *row, *rest = rows;
    Process found[256];
    unsigned total = 0;
    strcpy(rows, of_card(card->number, kind, ""));
    while ((row = strsep(&rest, ",")) && *row) {
        memset(&found[total], 0, sizeof(Process));
        found[total].pid = (unsigned)number(row);
        found[total++].used = number(strchr(row, ':') + 1);
    }
    unsigned room = *count;
    *count = total;
    if (total > room) return INSUFFICIENT_SIZE;
    if (into) memcpy(into, found, total * sizeof(Process));
    return OK;
}

#define LIST(name, kind) int name(Card *card, unsigned *count, Process *into) { FAIL(card->number); return listed(card, kind, count, into); }
LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
#ifndef OLD
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

int nvmlDeviceGetMemoryInfo_v2(Card *card, Memory2 *memory) {
    FAIL(card->number);
    if (memory->version != (sizeof *memory | 2 << 24)) return 25;
    memory->total = number(of_card(card->number, "total", "0"));
    memory->reserved = number(of_card(card->number, "reserved", "0"));
    return OK;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    FAIL(-1);
    *version = (int)number(text("cuda", "13040"));
    return OK;
}
#endif

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    FAIL(-1);
    snprintf(version, length, "%s", text("driver", "615.71.05"));
    return OK;
}

int nvmlEventSetCreate(Events **set) {
    FAIL(-1);
    *set = calloc(1, sizeof **set);
    FILE *events = opened("events", "r"); /* what was reported before is nobody's */
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

int nvmlDeviceRegisterEvents(Card *card, unsigned long long types, Events *set) {
    FAIL(card->number);
    if (types & ~XID_EVENT) return INVALID_ARGUMENT;
    set->is_registered[card->number] = 1;
    note("register");
    return OK;
}

static int heard(Events *set, Event *event) {
    int card, found = 0;
    unsigned long long xid;
    FILE *events = opened("events", "r");
    if (!events) return 0;
    fseek(events, set->read, SEEK_SET);
    while (!found && fscanf(events, "%d %llu\n", &card, &xid) == 2) {
        set->read = ftell(events);
        memset(event, 0, sizeof *event);
        event->card = card < 0 ? NULL : &cards[card];
        event->type = XID_EVENT;
        event->data = xid;
        event->instance = event->compute = ~0u;
        found = card < 0 || set->is_registered[card];
    }
    fclose(events);
    if (found) note("heard");
    return found;
}

static int waited(Events *set, Event *event, unsigned milliseconds) {
    for (unsigned spent = 0;; spent += 5) {
        int code = error("nvmlEventSetWait_v2", -1);
        if (code) return code;
        if (heard(set, event)) return OK;
        if (spent >= milliseconds || spent >= number(text("longest-wait", "10"))) return TIMEOUT;
        do usleep(5000); while (number(text("hang", "0")));
    }
}

int nvmlEventSetWait_v2(Events *set, Event *event, unsigned milliseconds) {
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    int code = waited(set, event, milliseconds);
    __atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    return code;
}
