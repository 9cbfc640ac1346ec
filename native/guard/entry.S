/* dlsym and dlvsym: a hooked name is answered here, every other one by a jump to the real function,
 * which then finds its caller's frame as if the guard were not there.
 */
#if defined(__x86_64__)
#define ENTRY(name, real)                                                                          \
    .globl name; .hidden name; .type name, @function; name: .cfi_startproc; endbr64;               \
    pushq %rdi; .cfi_adjust_cfa_offset 8; pushq %rsi; .cfi_adjust_cfa_offset 8;                    \
    pushq %rdx; .cfi_adjust_cfa_offset 8;                                                          \
    call resolve_name;                                                                             \
    popq %rdx; .cfi_adjust_cfa_offset -8; popq %rsi; .cfi_adjust_cfa_offset -8;                    \
    popq %rdi; .cfi_adjust_cfa_offset -8;                                                          \
    cmpq $1, %rax; ja 1f; je 2f; movq real@GOTPCREL(%rip), %rax; jmp *(%rax);                      \
    2: xorl %eax, %eax; 1: ret; .cfi_endproc; .size name, . - name
#elif defined(__aarch64__)
#define ENTRY(name, real)                                                                          \
    .globl name; .hidden name; .type name, %function; name: .cfi_startproc;                        \
    stp x29, x30, [sp, -48]!; stp x0, x1, [sp, 16]; str x2, [sp, 32];                              \
    bl resolve_name; mov x9, x0;                                                                   \
    ldr x2, [sp, 32]; ldp x0, x1, [sp, 16]; ldp x29, x30, [sp], 48;                                \
    cmp x9, 1; b.hi 1f; b.eq 2f;                                                                   \
    adrp x9, :got:real; ldr x9, [x9, :got_lo12:real]; ldr x9, [x9]; br x9;                         \
    2: mov x9, 0; 1: mov x0, x9; ret; .cfi_endproc; .size name, . - name
#endif
/* A second name of an entry: the assembler gives each name one version. */
#define SHOWN(label, entry) .globl label; .type label, STT_FUNC; label = entry

    .text
    ENTRY(resolve_entry_dlsym, resolve_dlsym)
    ENTRY(resolve_entry_dlvsym, resolve_dlvsym)

/* Programs ask for the version that was current when they were linked; one file serves both. */
#if defined(__x86_64__)
    SHOWN(dlsym_first, resolve_entry_dlsym)
    SHOWN(dlsym_later, resolve_entry_dlsym)
    SHOWN(dlvsym_first, resolve_entry_dlvsym)
    SHOWN(dlvsym_later, resolve_entry_dlvsym)
    .symver dlsym_first, dlsym@@GLIBC_2.2.5, remove
    .symver dlsym_later, dlsym@GLIBC_2.34, remove
    .symver dlvsym_first, dlvsym@@GLIBC_2.2.5, remove
    .symver dlvsym_later, dlvsym@GLIBC_2.34, remove
#else
    SHOWN(dlsym_first, resolve_entry_dlsym)
    SHOWN(dlsym_later, resolve_entry_dlsym)
    SHOWN(dlvsym_first, resolve_entry_dlvsym)
    SHOWN(dlvsym_later, resolve_entry_dlvsym)
    .symver dlsym_first, dlsym@@GLIBC_2.17, remove
    .symver dlsym_later, dlsym@GLIBC_2.34, remove
    .symver dlvsym_first, dlvsym@@GLIBC_2.17, remove
    .symver dlvsym_later, dlvsym@GLIBC_2.34, remove
#endif

    .section .note.GNU-stack, "", %progbits
