#!/usr/bin/python3
"""Lists the public headers: the headers that <plumb/plumb.h>, <plumb/lab.h> or <plumb/vision.h> lists."""
import pathlib
import re

print('\n'.join(sorted(header for users in sorted(pathlib.Path('plumb').glob('*.h'))
                       for header in re.findall(r'#include "(?!plumb/)([^"]+)"', users.read_text(encoding='utf-8')))))
