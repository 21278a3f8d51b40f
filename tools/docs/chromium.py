"""Runs a script in a page of a site, in headless Chromium."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

browser = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)

# The page is in a frame, because a browser window cannot be as narrow as a phone.
SHELL = '''<!doctype html><iframe id="frame" style="border:0;width:%dpx;height:900px" src="%s"></iframe><script>
addEventListener('load', () => setTimeout(async () => {
  const frame = document.getElementById('frame'), look = async (window, page) => {%s};
  const errors = [];
  frame.contentWindow.addEventListener('error', event => errors.push(event.message));
  frame.contentWindow.addEventListener('unhandledrejection', event => errors.push(String(event.reason)));
  const found = await look(frame.contentWindow, frame.contentDocument).catch(error => errors.push(String(error)));
  document.body.innerHTML = '<pre>FOUND' + encodeURIComponent(JSON.stringify({errors, found})) + 'DNUOF</pre>';
}, 500));</script>'''


def look_at(path, width, script):
    """The value that `script`, the body of an async function of `window` and `page`, returns for a page of this width.

    Ends the program if the page cannot be shown, or if a script fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        shell = pathlib.Path(folder) / 'look.html'
        shell.write_text(SHELL % (width, pathlib.Path(path).resolve().as_uri(), script), encoding='utf-8')
        done = subprocess.run(
            [browser, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--allow-file-access-from-files', f'--user-data-dir={folder}/profile', '--window-size=1600,1000',
             '--virtual-time-budget=8000', '--dump-dom', shell.as_uri()],
            capture_output=True, text=True, timeout=120, env={'HOME': folder, 'PATH': '/usr/bin:/bin'})
    match = re.search('<pre>FOUND([^<]*)DNUOF', done.stdout)
    result = json.loads(urllib.parse.unquote(match[1])) if match else {'errors': [f'no result\n{done.stderr}']}
    if result['errors']:
        sys.exit(f'error: Chromium, {path} at a width of {width} pixels: {"; ".join(result["errors"])}')
    return result['found']
