/* What tools/build_native.py writes for the stub: every export, with the version that it is of. */
#ifndef FAIRLEAD_STUB_H
#define FAIRLEAD_STUB_H

#include "driver.h"

struct stub_row {
    const char *symbol;
    int since;
    int per_thread;
    void *function;
};

/* Ends with a row without a symbol. */
extern const struct stub_row stub_rows[];

/* Whether a test ordered that an export, or exports of a kind, are refused with code 999. */
int stub_refuses(const char *export_name, const char *kind);

#endif
