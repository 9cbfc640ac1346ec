/* System calls without libc: they leave errno alone, and need no symbol version of any glibc.
 * Each returns what the kernel returns: negative errno on failure.
 */
#ifndef FAIRLEAD_SYS_H
#define FAIRLEAD_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
}
#elif defined(__aarch64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "the guard is written for x86_64 and aarch64"
#endif

#define SYS_AT_FDCWD (-100)
#define SYS_O_RDONLY 0
#define SYS_O_RDWR 2
#define SYS_O_CLOEXEC 02000000

static inline long sys_open(const char *path, int flags) {
    return sys_call(SYS_openat, SYS_AT_FDCWD, (long)path, flags | SYS_O_CLOEXEC, 0, 0, 0);
}
static inline long sys_read(long fd, void *into, size_t size) {
    return sys_call(SYS_read, fd, (long)into, (long)size, 0, 0, 0);
}
static inline long sys_write(long fd, const void *from, size_t size) {
    return sys_call(SYS_write, fd, (long)from, (long)size, 0, 0, 0);
}
static inline long sys_close(long fd) { return sys_call(SYS_close, fd, 0, 0, 0, 0, 0); }
static inline long sys_readlink(const char *path, char *into, size_t size) {
    return sys_call(SYS_readlinkat, SYS_AT_FDCWD, (long)path, (long)into, (long)size, 0, 0);
}
static inline long sys_seek_end(long fd) { return sys_call(SYS_lseek, fd, 0, 2, 0, 0, 0); }
static inline long sys_fallocate(long fd, size_t size) {
    return sys_call(SYS_fallocate, fd, 1 /* keep the size */, 0, (long)size, 0, 0);
}
static inline long sys_kill(long pid, int signal) {
    return sys_call(SYS_kill, pid, signal, 0, 0, 0, 0);
}
static inline long sys_getpid(void) { return sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0); }
static inline void sys_yield(void) { sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0); }

#ifdef __SANITIZE_THREAD__
/* The sanitizer does not see system calls, and would take memory that another thread gave back for
 * shared.
 */
#include <stdlib.h>
#include <sys/mman.h>
static inline void *sys_map(size_t size, long fd) {
    void *mapped = fd < 0 ? calloc(1, size) : mmap(NULL, size, 3, MAP_SHARED, (int)fd, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}
static inline void sys_unmap(void *from, size_t size) { (void)size, free(from); }
#else
/* NULL where the kernel refuses. `fd` below 0: memory of this process only. */
static inline void *sys_map(size_t size, long fd) {
    int flags = fd < 0 ? 0x22 /* private, anonymous */ : 0x01 /* shared */;
    long answer = sys_call(SYS_mmap, 0, (long)size, 3 /* read, write */, flags, fd, 0);
    return answer < 0 && answer > -4096 ? NULL : (void *)answer;
}
static inline void sys_unmap(void *from, size_t size) {
    sys_call(SYS_munmap, (long)from, (long)size, 0, 0, 0, 0);
}
#endif
static inline long sys_wipe_on_fork(void *page, size_t size) {
    return sys_call(SYS_madvise, (long)page, (long)size, 18, 0, 0, 0);
}

struct sys_time {
    int64_t seconds;
    int64_t nanoseconds;
};
static inline int64_t sys_nanoseconds(void) {
    struct sys_time now = {0, 0};
    sys_call(SYS_clock_gettime, 1 /* monotonic */, (long)&now, 0, 0, 0, 0);
    return now.seconds * 1000000000 + now.nanoseconds;
}
static inline void sys_sleep(int64_t nanoseconds) {
    struct sys_time most = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    sys_call(SYS_nanosleep, (long)&most, 0, 0, 0, 0, 0);
}
static inline long sys_futex_wait(uint32_t *word, uint32_t value, int64_t nanoseconds) {
    struct sys_time most = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    return sys_call(SYS_futex, (long)word, 0, value, (long)&most, 0, 0);
}
static inline void sys_futex_wake(uint32_t *word, int most) {
    sys_call(SYS_futex, (long)word, 1, most, 0, 0, 0);
}

#endif
