#!/bin/bash
# Runs a program on an emulated processor with AVX-512 and AMX (Sapphire Rapids in Bochs), with one thread:
#   tools/amx_machine.sh build/release/tests/backends_tests "the emulated registers*"
#   tools/amx_machine.sh --count build/release/bin/bench_step --threads 1 --dtype bf16 --depth 1 --batch 4 \
#     --steps 1 --warmup 0
# The clock of the program counts instructions: a nanosecond is one instruction. --count prints how many instructions
# each function of the program executed from the first reading of its steady clock on (functions with 1 % and more).
# While instructions are counted, the clock runs about ten times as fast.
#
# Linux does not turn on AMX in Bochs, because Bochs lacks XFD. Therefore the program runs without Linux: system.cpp
# answers its system calls. The program can read only its libraries, cannot start threads, and gets no variables of the
# environment. Its output appears when it has ended, with stderr in stdout.
#
# Needs Bochs 3.0 (packages bochs, bochs-term, bochsbios and vgabios of Debian 13; Bochs 2.7 of Debian 12 has no AMX, and
# Plumb's programs fail in Bochs 3.1), and from any Debian isolinux, syslinux-common and xorriso. On another system,
# install Bochs into a folder and name the folder. Both commands need root:
#   debootstrap --include=bochs,bochs-term,bochsbios,vgabios trixie /tmp/trixie
#   BOCHS_ROOT=/tmp/trixie tools/amx_machine.sh PROGRAM
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")/amx_machine
root=${BOCHS_ROOT:-/}
count=
[ "${1-}" = --count ] && { count=COUNT; shift; }
[ $# -gt 0 ] && [ "$1" != --help ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2; }
program=$1
[ -f "$program" ] || { echo "amx_machine.sh: there is no program $program" >&2; exit 2; }
bios=/usr/share/bochs/BIOS-bochs-latest vga=/usr/share/bochs/VGABIOS-lgpl-latest
loader=/usr/lib/ISOLINUX/isolinux.bin modules=/usr/lib/syslinux/modules/bios
for file in "${root%/}"{/usr/bin/bochs,$bios,$vga} $loader $modules/mboot.c32; do
  [ -e "$file" ] || { echo "amx_machine.sh: $file is missing; see the packages at the top of this script" >&2; exit 1; }
done
bochs=(env TERM=vt100 bochs)
[ "$root" = / ] || bochs=(chroot "$root" "${bochs[@]}")
version=$("${bochs[@]}" --help 2>&1 | sed -n 's/.*Bochs x86 Emulator \([0-9.]*\).*/\1/p')
[ "$version" = 3.0 ] || {
  echo "amx_machine.sh: expected Bochs 3.0, got ${version:-none}; see the top of this script" >&2
  exit 1
}
mkdir -p "${root%/}/tmp"
folder=$(mktemp -d "${root%/}/tmp/amx_machine.XXXXXX")
trap 'rm -rf "$folder"' EXIT
disk=$folder/disk
mkdir -p "$disk/isolinux"

g++ -std=c++20 -O2 -Wall -Wextra -ffreestanding -fno-exceptions -fno-rtti -fno-pie -fno-stack-protector \
  -fno-asynchronous-unwind-tables -fcf-protection=none -mgeneral-regs-only -mno-red-zone -c "$here/system.cpp" \
  -o "$folder/system.o"
gcc -c "$here/start.S" -o "$folder/start.o"
cat > "$folder/layout" <<'LAYOUT'
ENTRY(_start)
SECTIONS {
  . = 0x100000;
  .text : { *(.multiboot) *(.text .text.*) *(.rodata .rodata.*) }
  .data : { *(.data .data.*) }
  _edata = .;
  .bss : { *(.bss .bss.* COMMON) }
  _end = .;
  /DISCARD/ : { *(.eh_frame*) *(.note*) *(.comment) }
}
LAYOUT
ld -static -n --no-warn-rwx-segments -z noexecstack -T "$folder/layout" -o "$folder/system" "$folder/start.o" \
  "$folder/system.o"
objcopy -O elf32-i386 "$folder/system" "$disk/system"

# glibc copies without "rep movsb", whose bytes would count as instructions.
{ [ -z "$count" ] || echo COUNT
  echo LD_LIBRARY_PATH=/lib
  echo GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=100000000:glibc.cpu.x86_rep_stosb_threshold=100000000
  echo --
  echo "/$(basename "$program")"
  shift
  [ $# = 0 ] || printf '%s\n' "$@"
} > "$disk/lines"
files="/system --- /lines lines"
number=0
for file in /lib64/ld-linux-x86-64.so.2 "$program" $(ldd "$program" | awk '/=> \// {print $3}'); do
  cp -L "$file" "$disk/f$number"
  strip "$disk/f$number"
  files="$files --- /f$number $(basename "$file")"
  number=$((number + 1))
done
cp $loader $modules/{ldlinux,mboot,libcom32}.c32 "$disk/isolinux"
printf 'default program\nprompt 0\nlabel program\n kernel mboot.c32\n append %s\n' "$files" \
  > "$disk/isolinux/isolinux.cfg"
xorriso -as mkisofs -quiet -o "$folder/disk.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot \
  -boot-load-size 4 -boot-info-table "$disk" 2> "$folder/xorriso.log" || { cat "$folder/xorriso.log" >&2; exit 1; }

inside=/tmp/$(basename "$folder")  # the folder, seen from Bochs
cat > "$folder/bochsrc" <<CONFIGURATION
config_interface: textconfig
display_library: term
megs: 2048
romimage: file=$bios
vgaromimage: file=$vga
cpu: model=sapphire_rapids, count=1, ips=100000000, reset_on_triple_fault=0
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=$inside/disk.iso, status=inserted
boot: cdrom
port_e9_hack: enabled=1
log: $inside/log
panic: action=fatal
error: action=report
info: action=ignore
debug: action=ignore
clock: sync=none
CONFIGURATION
command=("${bochs[@]}" -q -f "$inside/bochsrc")
trap 'pkill -9 -f "$inside/bochsrc" || true; rm -rf "$folder"' EXIT
script -qfec "${command[*]@Q}" "$folder/screen" < /dev/null > /dev/null 2>&1 || true
tr -d '\r' < "$folder/screen" | sed -n $'/^\001amx start/,/^\001amx stop/p' > "$folder/output"
grep -q -a $'^\001amx stop' "$folder/output" || {
  echo "amx_machine.sh: Bochs failed:" >&2
  tail -q -n 5 "$folder/screen" "$folder/log" >&2
  exit 1
}
grep -v -a $'^\001amx' "$folder/output" || true
if [ -n "$count" ]; then
  nm -C -n "$program" > "$folder/symbols"
  python3 - "$folder/output" "$folder/symbols" <<'TABLE'
import bisect, collections, sys

lines = [line.rstrip("\n").split(" ", 2) for line in open(sys.argv[2]) if line[0] != " "]
symbols = [line for line in lines if line[1] in "tTwWiV"]
begins = [int(symbol[0], 16) for symbol in symbols]
counts = collections.Counter()
for line in open(sys.argv[1], errors="replace"):
    if line.startswith("\x01amx count "):
        _, _, address, count = line.split()
        at = bisect.bisect_right(begins, int(address, 16)) - 1
        counts[symbols[at][2] if at >= 0 else "?"] += int(count, 16)
total = sum(counts.values())
print(f"{total} instructions of the program, without its libraries")
for name, count in counts.most_common():
    if count >= total / 100:
        print(f"{count:12d} {100 * count / total:5.1f} %  {name.replace('plumb::', '')[:110]}")
TABLE
fi
sed -n $'s/^\001amx \\(exception\\|signal\\)/amx_machine.sh: \\1/p' "$folder/output" >&2
code=$(sed -n $'s/^\001amx exit //p' "$folder/output" | tail -n 1)
exit "$((16#${code:-1}))"
