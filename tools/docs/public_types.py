#!/usr/bin/python3
"""Counts the public types of <plumb/plumb.h>, <plumb/lab.h> and <plumb/vision.h>.

A header is public if one of these three headers lists it. Other headers, namespaces with the name detail, and private
members are internal. A public type is a class, struct, union or enum that a public header declares. A signature, a
member, an alias or a base class of a public header that names an internal type is an error.

Usage: public_types.py [--list]       run in a folder that has plumb/ and tools/docs/Doxyfile
Prints a line "plumb/plumb.h 140" for each of the headers, and a line "error: .." for each name of an internal type.
--list: also prints the types of each public header.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

INCLUDE = re.compile(r'#include "([^"]+)"')
USERS = ['plumb/plumb.h', 'plumb/lab.h', 'plumb/vision.h']


def includes(path):
    return INCLUDE.findall(pathlib.Path(path).read_text(encoding='utf-8')) if pathlib.Path(path).exists() else []


def all_headers(public):
    """All headers in the layers of these headers: a public header may name types that it declares and not includes."""
    return sorted(str(path) for folder in {header.split('/')[0] for header in public}
                  for path in pathlib.Path(folder).rglob('*.h'))


def doxygen(headers, folder):
    """Writes the XML of the headers into folder/xml."""
    settings = pathlib.Path('tools/docs/Doxyfile').read_text(encoding='utf-8') + f"""
INPUT = {' '.join(headers)}
OUTPUT_DIRECTORY = {folder}
GENERATE_HTML = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
WARNINGS = NO
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
"""
    subprocess.run(['doxygen', '-'], input=settings, text=True, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def file_of(element):
    location = element.find('location')
    return location.get('file') if location is not None else ''


def ids_in(element):
    return {ref.get('refid') for ref in element.iter('ref')} if element is not None else set()


class Declarations:
    """The declarations of all headers outside of private parts. types: by id (name, header). aliases: by id the ids
    that the alias names. names: a list of (header, name of the declaration, ids that the declaration names)."""

    def __init__(self, folder):
        self.types, self.aliases, self.names = {}, {}, []
        for file in pathlib.Path(folder, 'xml').glob('*.xml'):
            for compound in ElementTree.parse(file).getroot().iter('compounddef'):
                if compound.get('kind') in ('class', 'struct', 'union', 'namespace') and compound.get('prot') != 'private':
                    self.add(compound)

    def add(self, compound):
        scope = compound.find('compoundname').text
        if compound.get('kind') != 'namespace':
            self.types[compound.get('id')] = (scope, file_of(compound))
            bases = {base.get('refid') for base in compound.findall('basecompoundref') if base.get('prot') != 'private'}
            self.names.append((file_of(compound), scope, bases - {None}))
        for member in compound.iter('memberdef'):
            if member.get('prot') == 'private' or member.get('kind') == 'friend':
                continue
            name = f"{scope}::{member.find('name').text or '(unnamed)'}"
            named = ids_in(member.find('type')).union(*(ids_in(p.find('type')) for p in member.findall('param')))
            if member.get('kind') == 'enum':
                self.types[member.get('id')] = (name, file_of(member))
            if member.get('kind') == 'typedef':
                self.aliases[member.get('id')] = named
            self.names.append((file_of(member), name, named))

    def named_types(self, ids):
        """The types with these ids, and the types that aliases with these ids name."""
        for i in ids:
            if i in self.types:
                yield self.types[i]
            elif i in self.aliases:
                yield from self.named_types(self.aliases[i])


def main():
    public = {header: users for users in USERS for header in includes(users) if header not in USERS}
    with tempfile.TemporaryDirectory() as folder:
        doxygen(all_headers(public), folder)
        found = Declarations(folder)
    types = collections.defaultdict(set)
    for name, header in found.types.values():
        types[header].add(name.removeprefix('plumb::'))
    for users in USERS:
        print(users, sum(len(types[header]) for header in public if public[header] == users))
    errors = {(header, name, internal, where) for header, name, ids in found.names if header in public
              for internal, where in found.named_types(ids) if where not in public}
    for header, name, internal, where in sorted(errors):
        print(f'error: {header}: {name} names {internal}, which the internal header {where} declares')
    if '--list' in sys.argv:
        for header in public:
            print(header, len(types[header]), ' '.join(sorted(types[header])))


if __name__ == '__main__':
    main()
