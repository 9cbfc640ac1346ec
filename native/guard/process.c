/* Who a process is, by /proc: see process.h.
 *
 * The start time is field 22 of /proc/PID/stat, which a later process with the same pid does not
 * share.
 */
#include "process.h"

#include "sys.h"

struct stat_line {
    char state;
    uint64_t threads;
    uint64_t start;
};

/* 0, or the negative errno of the kernel; -1000 for a line that is not understood. */
static long read_stat(const char *path, struct stat_line *into) {
    char text[1024];
    long fd = sys_open(path, SYS_O_RDONLY);
    if (fd < 0) {
        return fd;
    }
    long size = sys_read(fd, text, sizeof text - 1);
    sys_close(fd);
    if (size <= 0) {
        return size ? size : -1000;
    }
    text[size] = 0;
    /* The name in parentheses may contain anything; the last one ends it. */
    long at = size;
    while (at > 0 && text[at - 1] != ')') {
        at--;
    }
    if (at == 0 || text[at] != ' ') {
        return -1000;
    }
    into->state = text[at + 1];
    int field = 3;
    uint64_t value = 0;
    for (at++; field <= 22 && text[at]; at++) {
        if (text[at] == ' ') {
            field++;
            value = 0;
        } else if (text[at] >= '0' && text[at] <= '9') {
            value = value * 10 + (uint64_t)(text[at] - '0');
            if (field == 20) {
                into->threads = value;
            } else if (field == 22) {
                into->start = value;
            }
        }
    }
    return field > 22 ? 0 : -1000;
}

int process_self(struct account *account) {
    struct stat_line line = {0, 0, 0};
    char name[64];
    if (read_stat("/proc/self/stat", &line)) {
        return -1;
    }
    long size = sys_readlink("/proc/self/ns/pid", name, sizeof name);
    uint64_t inode = 0;
    for (long at = 0; at < size; at++) {
        if (name[at] >= '0' && name[at] <= '9') {
            inode = inode * 10 + (uint64_t)(name[at] - '0');
        }
    }
    if (inode == 0) {
        return -1;
    }
    account->identity = (uint64_t)sys_getpid() | line.start << 32;
    account->start = line.start;
    account->pid_namespace = inode;
    return 0;
}

int process_is_dead(const struct account *account, const struct region_slot *slot) {
    struct stat_line line = {0, 0, 0};
    uint64_t identity = __atomic_load_n(&slot->identity, __ATOMIC_ACQUIRE);
    if (identity == account->identity ||
        __atomic_load_n(&slot->pid_namespace, __ATOMIC_ACQUIRE) != account->pid_namespace) {
        return 0;
    }
    long pid = (long)(identity & 0xffffffffu);
    char path[40] = "/proc/";
    char digits[12];
    int count = 0;
    for (long left = pid; left > 0 && count < 12; left /= 10) {
        digits[count++] = (char)('0' + left % 10);
    }
    char *end = path + 6;
    while (count > 0) {
        *end++ = digits[--count];
    }
    for (const char *tail = "/stat"; *tail; tail++) {
        *end++ = *tail;
    }
    *end = 0;
    long problem = read_stat(path, &line);
    if (problem == -2 || problem == -3) { /* ENOENT, ESRCH: /proc may hide it, kill does not */
        return sys_kill(pid, 0) == -3;
    }
    if (problem) {
        return 0;
    }
    if ((line.start & 0xffffffffu) != identity >> 32) {
        return 1;
    }
    return (line.state == 'Z' || line.state == 'X') && line.threads <= 1;
}
