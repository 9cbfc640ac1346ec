/* A library that looks for the driver itself. */
#include <dlfcn.h>

__attribute__((visibility("default"))) void *seek(const char *library, const char *name) {
    return dlsym(dlopen(library, RTLD_NOW), name);
}
