#!/usr/bin/python3
"""Checks the prose of the project: line lengths, paragraphs, the README's length, and phrases that are hard to read.

Markdown prose must be wrapped at 120 columns. A paragraph or list item may have at most five lines. Tables, code blocks,
headings and images are exempt. docs/results.md and its parts in docs/results are exempt because they are made from
ledgers.
"""
import pathlib
import re
import subprocess
import sys

WIDTH, PARAGRAPH, README = 120, 5, 170
HARD_TO_READ = 30  # the largest allowed number of lines with a phrase of HARD; each remaining line was reviewed
HARD = re.compile(r'\b(is|are) to (be|go|know|say|name|have)\b|\bso many\b|'
                  r'\b[Ww]ho (gives|looks|reads|sees|compares|watches)\b|as [A-Za-z:_-]+ (has|have) it\b|'
                  r'//.*\b([Nn]obody|[Ss]omebody)\b|// (Of|What) ')

files = subprocess.check_output(['git', '-c', 'safe.directory=*', 'ls-files'], text=True).split('\n')
errors, hard = [], []


def check_markdown(name, lines):
    in_code, first, count = False, 0, 0

    def end():
        if count > PARAGRAPH:
            errors.append(f'{name}:{first}: a paragraph of {count} lines; at most {PARAGRAPH}: split it, or make a list')

    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith('```'):
            in_code = not in_code
        exempt = in_code or line.lstrip().startswith(('```', '|', '#', '![', '<!--', '<'))
        indented_code = line.startswith('    ') and count == 0
        begins_item = re.match(r'\s*([-*]|\d+\.) ', line)
        if not line.strip() or exempt or indented_code or begins_item:
            end()
            count = 0
        if not line.strip() or exempt or indented_code:
            continue
        if count == 0:
            first = number
        count += 1
        if len(line) > WIDTH and ' ' in line.strip()[:WIDTH] and not re.fullmatch(r'\s*\S*\[[^\]]*\]\(\S*\)\S*', line):
            errors.append(f'{name}:{number}: {len(line)} columns; wrap prose at {WIDTH}')
    end()


for name in files:
    path = pathlib.Path(name)
    if not path.is_file() or path.suffix not in ('.md', '.h', '.cpp', '.cu', '.cuh', '.def', '.py', '.sh', '.cmake', '.txt'):
        continue
    lines = path.read_text(encoding='utf-8').split('\n')
    if path.suffix == '.md' and not name.startswith('docs/results'):
        check_markdown(name, lines)
    if name != 'tools/docs/prose.py' and not name.startswith('docs/results'):
        hard += [f'{name}:{number}: {line.strip()}' for number, line in enumerate(lines, 1) if HARD.search(line)]
    if name == 'README.md' and len(lines) - 1 > README:
        errors.append(f'README.md has {len(lines) - 1} lines; at most {README}: move a part to docs/')

if len(hard) > HARD_TO_READ:
    errors += hard
    errors.append(f'{len(hard)} lines have a phrase that is hard to read; at most {HARD_TO_READ} may')
if '--list' in sys.argv:
    print('\n'.join(hard))
for line in errors:
    print(line, file=sys.stderr)
sys.exit(1 if errors else 0)
