/* The table of hooked names that tools/build_native.py writes for a tenant. */
struct linked {
    const char *export_name;
    const char *symbol;
    int since;
    int per_thread;
    void *function;
};

extern const struct linked linked[];
