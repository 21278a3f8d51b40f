#!/usr/bin/python3
"""Reads Doxygen's warnings. Fails if a public type, free function or member function has no comment. Any other warning
also fails. Fields, enumerators, constructors, destructors, operators, friends, specializations and names_of() are
documented by the comment of their type. A const member function without arguments may be documented by its name."""
import re
import sys

MEMBER = re.compile(r'Member (?P<name>.+) \((?P<kind>\w+)\) of \w+ (?P<scope>.+) is not documented')
inherited_constructors = ('Error', 'Layer', 'Module', 'Gate')
accessor = re.compile(r'\(\) const\b')
missing = []
with open(sys.argv[1], encoding='utf-8') as log:
    for line in log:
        member = MEMBER.search(line)
        if member:
            name = member['name'].split('(')[0].strip()
            own = member['scope'].split('::')[-1].split('<')[0].strip()
            documented_by_its_type = (member['kind'] in ('variable', 'enumvalue', 'friend') or
                                      name in (own, '~' + own, 'names_of') or name.startswith('operator') or
                                      name in inherited_constructors or accessor.search(member['name']))
            if documented_by_its_type:
                continue
        if line.strip() and 'Internal inconsistency' not in line and line.strip() not in missing:
            missing.append(line.strip())
for line in missing:
    print(line.replace(' warning:', ''), file=sys.stderr)
if missing:
    print(f'error: {len(missing)} places of the public headers lack a comment (above, or in the line); add one that says '
          'what it does, with shapes, units, errors and sources', file=sys.stderr)
    sys.exit(1)
