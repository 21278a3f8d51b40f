// Starts the emulated machine: 64-bit mode with all memory at its physical address, AVX-512 and AMX enabled. Everything
// runs with the rights of a kernel, so the program may do anything, and a system call is a jump.
// Writes eax, eax + step, eax + 2 step, ... to a page table.
.macro fill table, entries, step
    mov $\table, %edi
    mov $\entries, %ecx
1:  mov %eax, (%edi)
    add $\step, %eax
    add $8, %edi
    loop 1b
.endm

.code32
.section .multiboot, "a"
.align 4
multiboot:
    .long 0x1badb002, 0x00010003, -(0x1badb002 + 0x00010003)
    .long multiboot, 0x100000, _edata, _end, _start

.section .text
.global _start
_start:
    cli
    mov %ebx, %ebp                  // the loader's table of files
    mov $stack_top, %esp
    mov $level3, %eax               // page tables: the first 4 GiB, in pages of 2 MiB
    or $7, %eax
    mov %eax, level4
    mov $level2, %eax
    or $7, %eax
    fill level3, 4, 4096
    mov $0x87, %eax
    fill level2, 2048, 0x200000
    mov $level4, %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x50620, %eax               // PAE, SSE, XSAVE, FSGSBASE
    mov %eax, %cr4
    mov $0xc0000080, %ecx           // EFER: 64-bit mode, SYSCALL
    rdmsr
    or $0x101, %eax
    wrmsr
    mov %cr0, %eax
    and $~0xc, %eax
    or $0x80000023, %eax            // paging, x87 errors as exceptions
    mov %eax, %cr0
    lgdt gdt_register
    ljmp $8, $start64

.code64
start64:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov $stack_top, %rsp
    xor %ecx, %ecx
    xor %edx, %edx
    mov $0x600e7, %eax              // x87, SSE, AVX, AVX-512, tiles
    xsetbv
    fninit
    mov $0xc0000081, %ecx           // SYSCALL: segments, entry, cleared flags (trap, interrupt, direction)
    xor %eax, %eax
    mov $0x00080008, %edx
    wrmsr
    mov $0xc0000082, %ecx
    mov $system_call_entry, %eax
    xor %edx, %edx
    wrmsr
    mov $0xc0000084, %ecx
    mov $0x700, %eax
    xor %edx, %edx
    wrmsr
    mov %ebp, %edi
    call run

// The registers of the call, from rax to rcx, are a Registers of system.cpp.
system_call_entry:
    mov %rsp, program_stack
    mov $call_stack_top, %rsp
    push %rcx
    push %r11
    push %r9
    push %r8
    push %r10
    push %rdx
    push %rsi
    push %rdi
    push %rax
    mov %rsp, %rdi
    sub $8, %rsp
    call system_call
    add $8, %rsp
    pop %rax
    pop %rdi
    pop %rsi
    pop %rdx
    pop %r10
    pop %r8
    pop %r9
    pop %r11
    pop %rcx
    pushq $16
    pushq program_stack
    push %r11
    pushq $8
    push %rcx
    iretq

// enter_program(stack, address)
.global enter_program
enter_program:
    pushq $16
    push %rdi
    pushq $2
    pushq $8
    push %rsi
    xor %edx, %edx
    xor %ebp, %ebp
    iretq

// With the trap flag, runs after each instruction of the program, on a stack of its own. It computes
// counts[rip - count_begin] += 1.
.global count_instruction
count_instruction:
    push %rax
    push %rcx
    mov 16(%rsp), %rax
    sub count_begin, %rax
    cmp count_bytes, %rax
    jae 1f
    mov counts, %rcx
    incl (%rcx, %rax, 4)
1:  pop %rcx
    pop %rax
    iretq

.global exceptions
.align 16
exceptions:                         // the entries of the processor's exceptions, 16 bytes each
.set n, 0
.rept 22
    .if n == 8 || (n >= 10 && n <= 14) || n == 17 || n == 21
    .else
    push $0
    .endif
    push $n
    jmp exception
    .align 16
    .set n, n + 1
.endr
exception:
    mov %rsp, %rdi
    mov %cr2, %rsi
    and $-16, %rsp
    call report_exception

.data
.align 16
.global gdt, task_state, count_begin, count_bytes, counts
gdt: .quad 0, 0x00209a0000000000, 0x0000920000000000, 0, 0
gdt_register:
    .word 39
    .long gdt
.align 16
task_state: .skip 128
program_stack: .quad 0
count_begin: .quad 0
count_bytes: .quad 0
counts: .quad 0

.section .bss
.align 4096
level4: .skip 4096
level3: .skip 4096
level2: .skip 4 * 4096
.skip 262144
stack_top:
.skip 262144
call_stack_top:
.skip 65536
.global count_stack_top
count_stack_top:
.skip 64
