#!/usr/bin/python3
"""Checks in Chromium that the header of the reference is not clipped, at the widths of a phone and of a desktop.

Usage: header.py SITE. Each text of the menu, and the search field, must have 3 pixels of the header above and below it.
"""
import sys

import chromium

LOOK = '''
  const found = [], bottom = page.getElementById('main-nav').getBoundingClientRect().bottom;
  for (const part of page.querySelectorAll('#main-menu > li > a, #MSearchBox')) {
    const range = page.createRange();
    range.selectNodeContents(part);
    const box = part.id ? part.getBoundingClientRect() : range.getBoundingClientRect();
    if (box.height && (box.top < 3 || box.bottom > bottom - 3 || box.right > window.innerWidth))
      found.push(`${part.textContent.trim() || 'the search field'} is clipped, at ${box.top} to ${box.bottom} of ${bottom}`);
  }
  return bottom > 20 ? found : ['there is no header'];'''

if not chromium.browser:
    print('note: the header of the reference was not checked, because Chromium is not installed')
    sys.exit(0)
errors = [f'at a width of {width} pixels: {error}' for width in (390, 1280)
          for error in chromium.look_at(f'{sys.argv[1]}/reference/index.html', width, LOOK)]
for error in errors:
    print(f'error: the header of the reference, {error}', file=sys.stderr)
sys.exit(1 if errors else 0)
