/* `tenant WAY strange nulls|zero|twice`: calls that no program should make.
 *
 * nulls: each hooked export with nothing but zeros. zero: each row with the size 0. twice: each row
 * frees what it made, and frees it again. Prints `NAME code C`, or `NAME signal S`; each call is in
 * a child, so that a crash ends only that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenant.h"

/* The answer of a child, or the signal that ended it. */
#define IN_CHILD(name, call)                                                                       \
    do {                                                                                           \
        fflush(stdout);                                                                            \
        pid_t child = fork();                                                                      \
        if (child == 0) {                                                                          \
            printf("%s code %d\n", name, (int)(call));                                             \
            fflush(stdout);                                                                        \
            _exit(0);                                                                              \
        }                                                                                          \
        int status = 0;                                                                            \
        waitpid(child, &status, 0);                                                                \
        if (WIFSIGNALED(status)) {                                                                 \
            printf("%s signal %d\n", name, WTERMSIG(status));                                      \
        }                                                                                          \
    } while (0)

static CUresult zeros(const char *name) {
    CUresult (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t) = find(name);
    return function ? function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) : -1;
}

static CUresult made_of(const struct row *row, uint64_t size, int frees) {
    uint64_t made = 0;
    CUresult code = row->make(row->name, size, &made);
    for (int each = 0; code == CUDA_SUCCESS && each < frees; each++) {
        code = row->undo(row->name, made);
    }
    return code;
}

void strange(const char *which, uint64_t size) {
    if (strcmp(which, "nulls") == 0) {
        for (const struct linked *row = linked; row->export_name; row++) {
            IN_CHILD(row->export_name, zeros(row->export_name));
        }
        return;
    }
    int is_zero = strcmp(which, "zero") == 0;
    for (const struct row *row = rows; row < rows + row_count; row++) {
        IN_CHILD(row->name, made_of(row, is_zero ? 0 : size, is_zero ? 1 : 2));
    }
}
