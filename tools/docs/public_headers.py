#!/usr/bin/python3
"""Lists the public headers: the headers that <plumb/plumb.h> includes, directly or through other headers."""
import pathlib
import re

found = []


def visit(text):
    for path in re.findall(r'#include "([^"]+\.h)"', text):
        if path not in found and pathlib.Path(path).exists():
            found.append(path)
            visit(pathlib.Path(path).read_text(encoding='utf-8'))


visit(pathlib.Path('cmake/plumb.h.in').read_text(encoding='utf-8'))
print('\n'.join(sorted(found)))
