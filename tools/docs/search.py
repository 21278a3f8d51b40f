#!/usr/bin/python3
"""Checks the search of a site: its index, and in Chromium the field, at the widths of a phone and of a desktop.

Usage: search.py SITE. The index must have every heading of the Markdown pages, and its addresses must exist. A query
that is typed into the field must list the expected address first, and keys must move through the list.
"""
import json
import pathlib
import re
import sys

import chromium

site = pathlib.Path(sys.argv[1])
errors = []


def check_index():
    entries = json.loads((site / 'search_index.js').read_text(encoding='utf-8').removeprefix('const searchIndex = ').rstrip(';\n'))
    addresses = {entry[0] for entry in entries}
    pages = {}
    for address in addresses:
        path, _, anchor = address.partition('#')
        if path not in pages:
            pages[path] = (site / path).read_text(encoding='utf-8') if (site / path).is_file() else ''
        if not pages[path] or anchor and f'id="{anchor}"' not in pages[path]:
            errors.append(f'{address} is in the index but not in the site')
    sources = [path for path in pathlib.Path('.').glob('*.md')] + [
        path for path in pathlib.Path('docs').rglob('*.md') if not path.name.endswith(('.notes.md', 'answers.md'))]
    for source in sources:
        path = str(source.with_name('index.html') if source.name == 'README.md' else source.with_suffix('.html'))
        headings = re.findall(r'<h[1-6] id="([^"]*)"', (site / path).read_text(encoding='utf-8'))
        if not headings:
            errors.append(f'{path} has no heading')
        errors.extend(f'{path}#{h} is not in the index' for h in headings if f'{path}#{h}' not in addresses)
    for name in ('nn::Linear', 'value_and_grad', 'Tensor'):
        if not any(entry[2] == name and entry[0].startswith('reference/') for entry in entries):
            errors.append(f'{name} of the reference is not in the index')
    if sum(len(entry[3].split()) for entry in entries if entry[0].startswith('docs/studies.html#')) < 1000:
        errors.append('the index does not have the text of docs/studies.html')


# Each query, and the address that must come first.
QUERIES = {
    'tutorial gradients': 'docs/tutorial/tensors_and_gradients.html',
    'own gate': 'docs/tutorial/gate_of_your_own.html',
    '  GLOSSARY ': 'docs/glossary.html',
    'use from cmake': 'docs/use_from_cmake.html',
    'nn::Linear': 'reference/',
    'value_and_grad': 'reference/',
    'torch.manual_seed': 'docs/pytorch_to_plumb.html#gradients',
    'c++ (': 'CONTRIBUTING.html#a-budget-of-lines-and-types',  # signs of regular expressions
    'qqzz': None,
}

LOOK = '''
  const field = page.querySelector('header input'), list = page.getElementById('found');
  const later = () => new Promise(resolve => setTimeout(resolve, 300));
  const press = (key, on = field) => on.dispatchEvent(new window.KeyboardEvent('keydown', {key, bubbles: true}));
  const type = async text => {
    field.value = text;
    field.dispatchEvent(new window.Event('input'));
    await later();
  };
  const result = {first: {}};
  window.frameElement.focus();
  press('/', page.body);
  result.focused = page.activeElement === field;
  for (const query of %s) {
    await type(query);
    result.first[query] = list.querySelector('a')?.href ?? list.textContent;
  }
  await type('gate');
  const chosen = () => [...list.querySelectorAll('a')].findIndex(a => a.getAttribute('aria-selected'));
  result.chosen = [chosen()];
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowUp', 'ArrowUp']) {
    press(key);
    result.chosen.push(chosen());
  }
  result.count = list.querySelectorAll('a').length;
  const box = list.getBoundingClientRect(), head = page.querySelector('header').getBoundingClientRect();
  result.fits = box.left >= 0 && box.right <= window.innerWidth && box.bottom <= window.innerHeight
    && box.top >= field.getBoundingClientRect().bottom && page.documentElement.scrollWidth <= window.innerWidth;
  result.outside = [...page.querySelectorAll('nav a, header input')].filter(a => a.getBoundingClientRect().right > window.innerWidth)
    .map(a => a.textContent || 'the field');
  press('Escape');
  result.closed = list.hidden && page.activeElement !== field;
  await type('glossary');
  press('ArrowDown');
  press('ArrowUp');
  press('Enter');
  await later();
  result.opened = window.location.pathname;
  return result;''' % json.dumps(list(QUERIES))


def check_field(width):
    found = chromium.look_at(site / 'docs/studies.html', width, LOOK)
    for query, expected in QUERIES.items():
        first = found['first'][query].removeprefix(site.resolve().as_uri() + '/')
        if expected is None and not first.startswith('No page has all words of'):
            errors.append(f'the query "{query}" should find nothing, got {first}')
        if expected is not None and not first.startswith(expected):
            errors.append(f'the query "{query}" should list {expected} first, got {first}')
    last = found['count'] - 1
    for name, expected in {'focused': True, 'chosen': [0, 1, 2, 1, 0, last], 'fits': True, 'outside': [], 'closed': True,
                           'opened': str((site / 'docs/glossary.html').resolve())}.items():
        if found[name] != expected:
            errors.append(f'at a width of {width} pixels, expected {name} to be {expected}, got {found[name]}')


check_index()
if chromium.browser:
    for pixels in (390, 1200):
        check_field(pixels)
else:
    print('note: the search field was not checked, because Chromium is not installed')
for line in errors:
    print(f'error: search: {line}', file=sys.stderr)
sys.exit(1 if errors else 0)
