#!/usr/bin/python3
"""Makes HTML pages from the project's Markdown, in the folder of a site. The folder must contain Doxygen's tags.xml.

A search field in the header finds sections of the pages, and names of the reference (search.js); this script writes its
index, search_index.js. A link to a Markdown file becomes a link to the page of that file. A link to a public header leads to the page of the
header in the reference. A link to another text file leads to a page that shows the file. A link to a folder leads to a
list of the files in that folder. Fails if the target of a link does not exist.
"""
import html
import json
import os
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree

import markdown
import pygments
import pygments.formatters
import pygments.lexers

site = pathlib.Path(sys.argv[1])
root = pathlib.Path('.')
formatter = pygments.formatters.HtmlFormatter(nobackground=True, cssclass='code')
errors = []

sources = [pathlib.Path(name) for name in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md')]
# The notes of ledgers, and the text of the page of results, are parts of other pages.
parts = ('.notes.md', 'answers.md')
sources += sorted(path for path in root.glob('docs/**/*.md') if not path.name.endswith(parts))
reference = {}
tags = xml.etree.ElementTree.parse(site / 'tags.xml').getroot()
for compound in tags.iter('compound'):
    if compound.get('kind') == 'file':
        reference[os.path.relpath(compound.findtext('path', '') + compound.findtext('name'))] = compound.findtext('filename')


def page_of(path):
    """The path, in the site, of the page for a file of the project."""
    if path.name == 'README.md':
        return path.with_name('index.html')
    return path.with_suffix('.html') if path.suffix == '.md' else path.with_name(path.name + '.html')


def slug(text, separator='-'):
    """The anchor that GitHub gives a heading."""
    return re.sub(r'[^\w\- ]', '', text.lower()).strip().replace(' ', separator)


def highlighted(text, name):
    try:
        lexer = pygments.lexers.get_lexer_for_filename(name)
    except pygments.util.ClassNotFound:
        lexer = pygments.lexers.TextLexer()
    return pygments.highlight(text, lexer, formatter)


def write(page, title, body, contents=''):
    up = '../' * (len(page.parts) - 1)
    navigation = ''.join(f'<a href="{up}{to}">{name}</a>' for name, to in (
        ('Docs', 'docs/index.html'), ('Tutorial', 'docs/tutorial/tensors_and_gradients.html'),
        ('Methods', 'docs/gates/index.html'), ('Results', 'docs/results.html'),
        ('Reference', 'reference/index.html')))
    out = site / page
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'''<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><link rel="stylesheet" href="{up}site.css">
<script src="{up}search.js" defer></script></head>
<body><header><a class="name" href="{up}index.html">Plumb</a><nav>{navigation}</nav></header>
<div class="columns">{contents}<main>{body}</main></div></body></html>
''', encoding='utf-8')


CLOSE_ON_PHONE = '<script>if (innerWidth < 1120) document.querySelector("aside details").open = false</script>'

index = []  # the entries of the search: address, title of the page, heading, text, weight


def plain(markup):
    """The text of HTML in one line."""
    return ' '.join(html.unescape(re.sub(r'<[^>]*>', '', re.sub(r'</(p|li|td|th|div)>', ' ', markup))).split())


def add_sections(page, title, body):
    """Adds one entry for each heading of a page, with the text below it."""
    # A heading of the change log or of a ledger is rarely the page that a reader looks for.
    weight = .5 if page.name == 'CHANGELOG.html' or page.is_relative_to('docs/results') else 1
    parts = re.split(r'(?=<h[1-6] id=)', body)
    for part in parts if parts[0].strip() else parts[1:]:
        heading = re.match(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>', part, re.S)
        address = f'{page}#{html.unescape(heading[1])}' if heading else str(page)
        index.append((address, title, plain(heading[2]) if heading else title, plain(part[heading.end():] if heading else part), weight))


def add_reference(tags):
    """Adds one entry for each public type and each function outside of types."""
    for compound in tags.iter('compound'):
        scope = compound.findtext('name').removeprefix('plumb::')
        if compound.get('kind') in ('class', 'struct'):
            index.append(('reference/' + compound.findtext('filename'), 'Reference', scope, '', .9))
        elif compound.get('kind') == 'namespace':
            scope = '' if scope == 'plumb' else scope + '::'
            functions = {m.findtext('name'): m for m in reversed(compound.findall('member')) if m.get('kind') == 'function'}
            for name, member in sorted(functions.items()):  # the first overload of each name
                index.append((f'reference/{member.findtext("anchorfile")}#{member.findtext("anchor")}', 'Reference',
                              scope + name, '', .9))


others = set()  # files and folders to which pages link


def relink(source, text):
    """Turns the links of a page into links of the site. The links of the page are relative to its Markdown file."""
    here = page_of(source).parent

    def link(match):
        attribute, target = match[1], html.unescape(match[2])
        if re.match(r'[a-z]+:', target) or target.startswith('#'):
            return match[0]
        path, _, anchor = target.partition('#')
        file = pathlib.Path(os.path.normpath(source.parent / path))
        if not file.exists():
            errors.append(f'{source}: link to {target}, which does not exist')
            return match[0]
        if attribute == 'src' or file.suffix in ('.png', '.svg', '.jpg'):
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, site / file)
            to = file
        elif str(file) in reference:
            to = pathlib.Path('reference') / reference[str(file)]
        elif file.is_dir() and (file / 'README.md').exists():
            to = file / 'index.html'
        elif file.is_dir():
            others.add(file)
            to = file / 'index.html'
        else:
            if file not in sources:
                others.add(file)
            to = page_of(file)
        return f'{attribute}="{html.escape(os.path.relpath(to, here))}{"#" + anchor if anchor else ""}"'

    return re.sub(r'\b(href|src)="([^"]*)"', link, text)


shutil.copyfile('tools/docs/search.js', site / 'search.js')
shutil.copyfile('tools/docs/site.css', site / 'site.css')
with open(site / 'site.css', 'a', encoding='utf-8') as css:
    css.write('@media (prefers-color-scheme: light) {\n' + formatter.get_style_defs('.code') + '\n}\n')
    dark = pygments.formatters.HtmlFormatter(style='github-dark', nobackground=True)
    css.write('@media (prefers-color-scheme: dark) {\n' + dark.get_style_defs('.code') + '\n}\n')



def fenced(text):
    """Turns indented code into fenced code, so that lists may be indented by two spaces."""
    return re.sub(r'(?<=\n\n)((?:    .*\n)(?:(?:    .*)?\n)*)(?=\S|\Z)',
                  lambda m: '```text\n' + re.sub(r'^    ', '', m[1].rstrip('\n'), flags=re.M) + '\n```\n\n', text)


def short_code(match):
    return f'<code class="short">{match[1]}</code>' if len(match[1]) < 30 else match[0]


for source in sources:
    converter = markdown.Markdown(
        extensions=['tables', 'fenced_code', 'codehilite', 'toc', 'sane_lists', 'md_in_html'], tab_length=2,
        extension_configs={'toc': {'slugify': slug, 'toc_depth': '2-2'},
                           'codehilite': {'css_class': 'code', 'guess_lang': False}})
    text = source.read_text(encoding='utf-8')
    body = relink(source, converter.convert(fenced(text)))
    body = re.sub(r'<table>.*?</table>', lambda m: f'<div class="wide">{m[0]}</div>', body, flags=re.S)
    body = re.sub(r'<code>([^<]*)</code>', short_code, body)
    title = re.search(r'^# (.+)$', text, re.M)
    sections = converter.toc_tokens
    while len(sections) == 1 and sections[0]['level'] == 1:
        sections = sections[0]['children']
    contents = ''
    if len(sections) > 3:
        items = ''.join(f'<li><a href="#{s["id"]}">{s["name"]}</a></li>' for s in sections)
        contents = f'<aside><details open><summary>On this page</summary><ul>{items}</ul></details></aside>' + CLOSE_ON_PHONE
    name = title[1] if title else source.stem
    add_sections(page_of(source), name, body)
    write(page_of(source), name if name == 'Plumb' else f'{name} · Plumb', body, contents)

for file in sorted(others):
    if file.is_dir():
        items = ''.join(f'<li>{html.escape(path.name)}</li>' for path in sorted(file.iterdir()))
        write(file / 'index.html', str(file), f'<h1>{html.escape(str(file))}/</h1><ul>{items}</ul>')
    else:
        text = file.read_text(encoding='utf-8')
        write(page_of(file), str(file), f'<h1>{html.escape(str(file))}</h1>{highlighted(text, file.name)}')

add_reference(tags)
(site / 'search_index.js').write_text(
    'const searchIndex = ' + json.dumps(index, ensure_ascii=False, separators=(',', ':')).replace('],[', '],\n[') + ';\n', encoding='utf-8')

for line in errors:
    print(line, file=sys.stderr)
if errors:
    print(f'error: {len(errors)} links of the Markdown pages lead to nothing', file=sys.stderr)
    sys.exit(1)
