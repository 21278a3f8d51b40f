#!/usr/bin/python3
"""Checks the commands of the Markdown pages against the programs in a folder: every program must exist and
accept the options. If a program has --print-config, that option checks the others; otherwise the script looks for their
names in --help.
Usage: tools/docs/commands.py BIN_FOLDER"""
import pathlib
import re
import shlex
import subprocess
import sys

binaries = pathlib.Path(sys.argv[1])
# Options that need files of other commands, or that print the settings themselves.
FILES = ('--config', '--weights', '--preset-diff', '--print-config')
errors, checked = [], 0
helps = {}


def commands():
    pages = [pathlib.Path('README.md'), pathlib.Path('CONTRIBUTING.md'), *sorted(pathlib.Path('docs').rglob('*.md'))]
    for page in pages:
        text = re.sub(r'\\\n', '  ', page.read_text(encoding='utf-8'))  # joins a command that spans several lines
        for number, line in enumerate(text.split('\n'), 1):
            text = line.strip()
            match = re.match(r'(?:\$ )?build/release/bin/(\S+.*)$', text)
            if match and '...' not in text and ' | ' not in text:
                yield f'{page}:{number}', match[1]
            for inline in re.findall(r'`build/release/bin/([^`]+)`', line):
                if '...' not in inline:
                    yield f'{page}:{number}', inline
            if line.startswith('| ') and page.name == 'README.md':
                for inline in re.findall(r'`([a-z_]+ --[^`]+)`', line):
                    if (binaries / inline.split()[0]).exists():
                        yield f'{page}:{number}', inline


def help_of(program):
    if program not in helps:
        helps[program] = subprocess.run([binaries / program, '--help'], capture_output=True, text=True).stdout
    return helps[program]


for place, command in commands():
    command = re.sub(r'\$\w+', '1', command)
    words = shlex.split(re.split(r' > | && | & ?$| 2>', command)[0], comments=True)
    program, arguments = words[0], words[1:]
    if not (binaries / program).exists():
        errors.append(f'{place}: no program {program}')
        continue
    checked += 1
    for option in (a.split('=')[0] for a in arguments if re.match(r'--[a-z]', a)):
        if not re.search(re.escape(option) + r'\b', help_of(program)):
            errors.append(f'{place}: {program} has no option {option}')
    if '--print-config' in help_of(program) and not any(a in FILES for a in arguments):
        settings = [a for a in arguments if a != '--resume']  # --resume needs the folder of a study
        result = subprocess.run([binaries / program, *settings, '--print-config'], capture_output=True, text=True)
        if result.returncode != 0:
            errors.append(f'{place}: {command}: {result.stderr.strip()}')
for line in errors:
    print(line, file=sys.stderr)
print(f'{checked} commands')
sys.exit(1 if errors or checked < 40 else 0)
