#!/usr/bin/python3
"""Checks in Chromium that the header of the reference is not clipped, at the widths of a phone and of a desktop.

Usage: header.py SITE. Each text of the menu, and the search field, must have 3 pixels of the header above and below it.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LOOK = '''<!doctype html><iframe id="frame" style="border:0;width:%dpx;height:900px" src="%s"></iframe><script>
addEventListener('load', () => setTimeout(() => {
  const page = document.getElementById('frame').contentDocument, found = [];
  const bottom = page.getElementById('main-nav').getBoundingClientRect().bottom;
  for (const part of page.querySelectorAll('#main-menu > li > a, #MSearchBox')) {
    const range = page.createRange();
    range.selectNodeContents(part);
    const box = part.id ? part.getBoundingClientRect() : range.getBoundingClientRect();
    if (box.height && (box.top < 3 || box.bottom > bottom - 3 || box.right > %d))
      found.push(`${part.textContent.trim() || 'the search field'} at ${box.top} to ${box.bottom} of ${bottom}`);
  }
  document.body.innerHTML = '<pre>FOUND' + JSON.stringify([bottom > 20, found]) + 'DNUOF</pre>';
}, 500));</script>'''

site = pathlib.Path(sys.argv[1]).resolve()
browser = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)
if not browser:
    print('note: the header of the reference was not checked, because Chromium is not installed')
    sys.exit(0)
status = 0
with tempfile.TemporaryDirectory() as folder:
    for width in (390, 1280):
        page = pathlib.Path(folder) / 'look.html'
        page.write_text(LOOK % (width, (site / 'reference/index.html').as_uri(), width), encoding='utf-8')
        dom = subprocess.run(
            [browser, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--allow-file-access-from-files', f'--user-data-dir={folder}/profile', '--window-size=1600,1000',
             '--virtual-time-budget=8000', '--dump-dom', page.as_uri()],
            capture_output=True, text=True, timeout=120, env={'HOME': folder, 'PATH': '/usr/bin:/bin'}).stdout
        match = re.search('<pre>FOUND(.*)DNUOF', dom)
        there, clipped = json.loads(match[1]) if match else (False, [])
        if not there:
            print(f'error: Chromium did not show the header at a width of {width} pixels', file=sys.stderr)
            status = 1
        for part in clipped:
            print(f'error: the header of the reference clips {part} pixels, at a width of {width}', file=sys.stderr)
            status = 1
sys.exit(status)
