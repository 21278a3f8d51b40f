// The system under the program that tools/amx_machine.sh runs. It answers the system calls of a program with one thread
// that reads only the files on its disk, and counts the program's instructions on request. A nanosecond of its clock is
// an instruction.
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Registers {
  u64 rax, rdi, rsi, rdx, r10, r8, r9, r11, rcx;
};

extern "C" {
extern u64 gdt[5], count_begin, count_bytes, counts;
extern u8 task_state[128], count_stack_top[], exceptions[];
void count_instruction();
[[noreturn]] void enter_program(u64* stack, u64 address);

// GCC calls these two for copies and initial values.
void* memcpy(void* to, const void* from, std::size_t bytes) {
  void* const result = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return result;
}
void* memset(void* to, int byte, std::size_t bytes) {
  void* const result = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
  return result;
}
}

namespace {

constexpr u64 page = 4096, memory_end = 0x7f000000, large = u64{1} << 30, reserved = 0x28000000;
constexpr u64 not_found = -2ul, try_again = -11ul, no_memory = -12ul, invalid = -22ul, no_terminal = -25ul,
              no_such_call = -38ul;

// Output goes to port 0xe9, which Bochs prints.
void put(char c) { __asm__ volatile("outb %0, %1" : : "a"(c), "Nd"(u16{0xe9})); }
void put(const char* s) {
  while (*s) put(*s++);
}
void put(u64 x) {
  int shift = 60;
  while (shift && !(x >> shift)) shift -= 4;
  for (; shift >= 0; shift -= 4) put("0123456789abcdef"[x >> shift & 15]);
}

// Begins a line for amx_machine.sh, apart from the lines of the program.
void record(const char* kind) {
  put("\n\001amx ");
  put(kind);
}

bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}
const char* base_name(const char* path) {
  const char* name = path;
  for (; *path; ++path)
    if (*path == '/') name = path + 1;
  return name;
}
u64 pages(u64 bytes) { return (bytes + page - 1) & ~(page - 1); }
u64 instructions() {
  u32 low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return u64{high} << 32 | low;
}

struct File {
  const char* name;
  u8* data;
  u64 size;
};
File files[40];
int file_count;
struct {
  File* file;
  u64 at;
} opened[64];
const char* program = "";
u64 memory_top, break_begin, break_end;
bool counting;

[[noreturn]] void stop() {
  if (counts)
    for (u64 i = 0; i < count_bytes; ++i)
      if (const u32 n = reinterpret_cast<u32*>(counts)[i]) record("count "), put(i), put(' '), put(u64{n});
  record("stop\n");
  for (const char c : {'S', 'h', 'u', 't', 'd', 'o', 'w', 'n'})  // ends Bochs
    __asm__ volatile("outb %0, %1" : : "a"(c), "d"(u16{0x8900}));
  for (;;) __asm__ volatile("hlt");
}

// Freed pieces of memory are used again for the same size.
struct {
  u64 address, bytes;
} freed[4096];
int freed_count;
u64 allocate(u64 bytes) {
  bytes = pages(bytes);
  for (int i = 0; i < freed_count; ++i)
    if (freed[i].bytes == bytes) {
      const u64 address = freed[i].address;
      freed[i] = freed[--freed_count];
      return address;
    }
  if (memory_top + bytes > memory_end) return no_memory;
  memory_top += bytes;
  return memory_top - bytes;
}

File* find(const char* path) {
  for (int i = 0; i < file_count; ++i)
    if (same(base_name(path), files[i].name)) return &files[i];
  return nullptr;
}
u64 open(const char* path) {
  File* const file = find(path);
  for (u64 i = 3; file && i < 64; ++i)
    if (!opened[i].file) {
      opened[i] = {file, 0};
      return i;
    }
  return not_found;
}
u64 read(const File* file, u64 at, u64 to, u64 bytes) {
  if (!file || at >= file->size) return 0;
  if (bytes > file->size - at) bytes = file->size - at;
  memcpy(reinterpret_cast<void*>(to), file->data + at, bytes);
  return bytes;
}
u64 describe(const File* file, u64 to) {  // struct stat
  auto* const words = reinterpret_cast<u64*>(to);
  memset(words, 0, 144);
  words[1] = file ? 100 + static_cast<u64>(file - files) : 1;
  words[2] = 1;
  reinterpret_cast<u32*>(words)[6] = file ? 0100755 : 020620;
  words[6] = file ? file->size : 0;
  words[7] = page;
  return 0;
}

u64 map(const Registers& r) {
  const u64 bytes = pages(r.rsi);
  const bool anonymous = r.r10 & 0x20, fixed = r.r10 & 0x10;
  if (!r.rdx && r.rsi > large) {  // an allocator reserves address space
    const u64 address = allocate(reserved);
    if (address != no_memory) memset(reinterpret_cast<void*>(address), 0, reserved);
    return address;
  }
  const u64 address = fixed ? r.rdi : allocate(bytes);
  if (address == no_memory) return address;
  memset(reinterpret_cast<void*>(address), 0, bytes);
  if (anonymous) return address;
  const File* const file = opened[r.r8].file;
  read(file, r.r9, address, bytes);
  if (!count_bytes && same(file->name, program)) {
    count_begin = address;
    count_bytes = bytes;
    if (counting) {
      counts = allocate(4 * bytes);
      memset(reinterpret_cast<void*>(counts), 0, 4 * bytes);
    }
  }
  return address;
}

u64 seconds_to(u64 to, u64 unit) {
  const u64 t = instructions();
  reinterpret_cast<u64*>(to)[0] = t / 1000000000;
  reinterpret_cast<u64*>(to)[1] = t % 1000000000 / unit;
  return 0;
}
u64 limits(u64 to, u64 kind) {
  if (to) reinterpret_cast<u64*>(to)[0] = reinterpret_cast<u64*>(to)[1] = kind == 3 ? 8 << 20 : ~u64{0};
  return 0;
}

u64 answer(const Registers& r) {
  const u64 a = r.rdi, b = r.rsi, c = r.rdx;
  auto* const at_a = reinterpret_cast<u64*>(a);
  switch (r.rax) {
    case SYS_read: {
      const u64 n = read(opened[a].file, opened[a].at, b, c);
      opened[a].at += n;
      return n;
    }
    case SYS_pread64:
      return read(opened[a].file, r.r10, b, c);
    case SYS_write:
      for (u64 i = 0; i < c; ++i) put(reinterpret_cast<const char*>(b)[i]);
      return c;
    case SYS_writev: {
      u64 total = 0;
      for (u64 i = 0; i < c; ++i) {
        const u64* const piece = reinterpret_cast<u64*>(b) + 2 * i;
        for (u64 j = 0; j < piece[1]; ++j) put(reinterpret_cast<const char*>(piece[0])[j]);
        total += piece[1];
      }
      return total;
    }
    case SYS_openat:
      return open(reinterpret_cast<const char*>(b));
    case SYS_close:
      opened[a].file = nullptr;
      return 0;
    case SYS_fstat:
      return describe(opened[a].file, b);
    case SYS_newfstatat: {
      const auto* const path = reinterpret_cast<const char*>(b);
      if (!*path) return describe(opened[a].file, c);
      const File* const file = find(path);
      return file ? describe(file, c) : not_found;
    }
    case SYS_mmap:
      return map(r);
    case SYS_munmap:
      if (b && a < memory_top && freed_count < 4096) freed[freed_count++] = {a, pages(b)};
      return 0;
    case SYS_mremap: {
      const u64 address = allocate(c);
      if (address != no_memory) memcpy(reinterpret_cast<void*>(address), at_a, b < c ? b : c);
      return address;
    }
    case SYS_brk:
      if (a < break_begin || a >= break_begin + 0x10000000) return break_end;
      if (a > break_end) memset(reinterpret_cast<void*>(break_end), 0, a - break_end);
      return break_end = a;
    case SYS_arch_prctl:
      if (a == 0x1002) {
        __asm__ volatile("wrmsr" : : "c"(0xc0000100), "a"(static_cast<u32>(b)), "d"(static_cast<u32>(b >> 32)));
        return 0;
      }
      return a == 0x1023 && b == 18 ? 0 : invalid;  // the permission for tiles
    case SYS_clock_gettime:
      return seconds_to(b, 1);
    case SYS_gettimeofday:
      return seconds_to(a, 1000);
    case SYS_time:
      return 1700000000;
    case SYS_prlimit64:
      return limits(r.r10, b);
    case SYS_getrlimit:
      return limits(b, a);
    case SYS_sched_getaffinity:  // one processor
      memset(reinterpret_cast<void*>(c), 0, b);
      *reinterpret_cast<u8*>(c) = 1;
      return 8;
    case SYS_getrandom:
      for (u64 i = 0; i < b; ++i) reinterpret_cast<u8*>(a)[i] = static_cast<u8>(i * 37 + 11);
      return b;
    case SYS_getrusage:
      memset(reinterpret_cast<void*>(b), 0, 144);
      return 0;
    case SYS_sysinfo:
      memset(at_a, 0, 112);
      at_a[4] = 2 * large;
      at_a[5] = large;
      reinterpret_cast<u32*>(at_a)[26] = 1;
      return 0;
    case SYS_getpid:
    case SYS_gettid:
    case SYS_set_tid_address:
      return 1;
    case SYS_clone:
    case SYS_clone3:
      return try_again;  // no threads
    case SYS_ioctl:
      return no_terminal;
    case SYS_exit:
    case SYS_exit_group:
      record("exit ");
      put(a);
      stop();
    case SYS_tgkill:
      record("signal 0x");
      put(c);
      stop();
    case SYS_mprotect:
    case SYS_rt_sigaction:
    case SYS_rt_sigprocmask:
    case SYS_sigaltstack:
    case SYS_sched_yield:
    case SYS_madvise:
    case SYS_nanosleep:
    case SYS_prctl:
    case SYS_futex:
    case SYS_sched_setaffinity:
    case SYS_clock_nanosleep:
    case SYS_set_robust_list:
      return 0;
  }
  return no_such_call;
}

struct {
  u16 low, segment, flags, middle;
  u32 high, zero;
} gates[32];
void set_gate(int n, u64 address, u16 flags) {
  gates[n] = {static_cast<u16>(address), 8, flags, static_cast<u16>(address >> 16), 0, 0};
}
void use_gates() {
  struct [[gnu::packed]] {
    u16 size;
    u64 address;
  } const table{sizeof gates - 1, reinterpret_cast<u64>(gates)};
  __asm__ volatile("lidt %0" : : "m"(table));
}

// Copies the segments of the dynamic loader, an ELF file, to memory.
u64 load(const File& file, u64 at) {
  const u64 headers = *reinterpret_cast<u64*>(file.data + 32);
  for (int i = 0; i < *reinterpret_cast<u16*>(file.data + 56); ++i) {
    const u8* const header = file.data + headers + 56 * i;
    if (*reinterpret_cast<const u32*>(header) != 1) continue;
    const auto* const words = reinterpret_cast<const u64*>(header);  // 1: offset, 2: address, 4: bytes in the file, 5
    auto* const to = reinterpret_cast<u8*>(at + words[2]);
    memset(to, 0, words[5]);
    memcpy(to, file.data + words[1], words[4]);
  }
  return at + *reinterpret_cast<u64*>(file.data + 24);
}

}  // namespace

// Counting begins when the program first reads its steady clock, as a benchmark does before its first step. r11 has the
// program's flags: the trap flag makes the processor call count_instruction().
extern "C" void system_call(Registers* r) {
  if (counting && r->rax == SYS_clock_gettime && r->rdi == 1) r->r11 |= 0x100;
  r->rax = answer(*r);
}

extern "C" void report_exception(const u64* frame, u64 address) {
  record("exception 0x");
  put(frame[0]);
  put(" at 0x");
  put(frame[2]);
  if (frame[2] - count_begin < count_bytes) {
    put(" (0x");
    put(frame[2] - count_begin);
    put(" of the program)");
  }
  put(", address 0x");
  put(address);
  stop();
}

// The loader's table has the addresses of the files. The first file has a line for each variable of the environment, a
// line "--", and a line for each argument, of which the first is the program. The variable COUNT asks for counts.
extern "C" void run(const u32* table) {
  for (int i = 0; i < 22; ++i) set_gate(i, reinterpret_cast<u64>(exceptions + 16 * i), 0x8e00);
  set_gate(1, reinterpret_cast<u64>(&count_instruction), 0x8e01);
  use_gates();
  const u64 task = reinterpret_cast<u64>(task_state);
  *reinterpret_cast<u64*>(task_state + 36) = reinterpret_cast<u64>(count_stack_top);
  gdt[3] = 0x67 | (task & 0xffffff) << 16 | u64{0x89} << 40 | (task >> 24 & 0xff) << 56;
  __asm__ volatile("ltr %0" : : "r"(u16{24}));
  record("start\n");

  char *lines = nullptr, *lines_end = nullptr;
  u64 end = 0x2000000;
  const auto* entry = reinterpret_cast<const u32*>(u64{table[6]});
  for (u32 i = 0; i < table[5]; ++i, entry += 4) {
    const char* name = reinterpret_cast<const char*>(u64{entry[2]});  // the path on the disk, a space, the name
    while (*name && *name != ' ') ++name;
    while (*name == ' ') ++name;
    auto* const data = reinterpret_cast<u8*>(u64{entry[0]});
    if (entry[1] > end) end = entry[1];
    if (i == 0)
      lines = reinterpret_cast<char*>(data), lines_end = reinterpret_cast<char*>(u64{entry[1]});
    else if (file_count < 40)
      files[file_count++] = {name, data, entry[1] - entry[0]};
  }
  memory_top = (end + 0x1fffff) & ~u64{0x1fffff};
  break_begin = break_end = allocate(0x10000000);

  char *arguments[64], *environment[64];
  u64 argument_count = 0, variable_count = 0;
  arguments[argument_count++] = const_cast<char*>("ld.so");
  bool in_arguments = false;
  for (char* line = lines; line < lines_end && argument_count < 63 && variable_count < 63;) {
    char* rest = line;
    while (*rest != '\n') ++rest;
    *rest = 0;
    if (in_arguments)
      arguments[argument_count++] = line;
    else if (same(line, "--"))
      in_arguments = true;
    else if (same(line, "COUNT"))
      counting = true;
    else
      environment[variable_count++] = line;
    line = rest + 1;
  }
  if (argument_count > 1) program = base_name(arguments[1]);

  const File* const loader = find("ld-linux-x86-64.so.2");
  const u64 at = allocate(0x400000), first = load(*loader, at), stack_bytes = 0x2000000;
  u64* stack = reinterpret_cast<u64*>(allocate(stack_bytes) + stack_bytes - page);
  u64* word = stack;
  *word++ = argument_count;
  for (u64 i = 0; i < argument_count; ++i) *word++ = reinterpret_cast<u64>(arguments[i]);
  *word++ = 0;
  for (u64 i = 0; i < variable_count; ++i) *word++ = reinterpret_cast<u64>(environment[i]);
  *word++ = 0;
  static u8 random[16] = {1, 2, 3, 5, 7, 11, 13, 17};
  const u64 headers = *reinterpret_cast<u64*>(loader->data + 32), count = *reinterpret_cast<u16*>(loader->data + 56);
  const u64 auxiliary[] = {3,  at + headers,
                           4,  56,
                           5,  count,
                           6,  page,
                           7,  0,
                           9,  first,
                           11, 0,
                           12, 0,
                           13, 0,
                           14, 0,
                           23, 0,
                           25, reinterpret_cast<u64>(random),
                           0,  0};
  memcpy(word, auxiliary, sizeof auxiliary);
  enter_program(stack, first);
}
