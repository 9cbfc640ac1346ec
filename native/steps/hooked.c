/* A program that contains the guard, for the compiler's sanitizers: what entry.S does in the library,
 * under the name that the program's own `dlsym` has there.
 */
void *hooked_dlsym(void *handle, const char *name);
void resolve_entry_dlsym(void);
void resolve_entry_dlvsym(void);

extern void *resolve_name(void *handle, const char *name);
extern void *resolve_dlsym;

void resolve_entry_dlsym(void) {}
void resolve_entry_dlvsym(void) {}

void *hooked_dlsym(void *handle, const char *name) {
    void *answer = resolve_name(handle, name);
    if (answer == (void *)1) {
        return (void *)0;
    }
    return answer ? answer : ((void *(*)(void *, const char *))resolve_dlsym)(handle, name);
}
