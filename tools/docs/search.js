// The search of the guide: a field in the header of every page, with a list of the sections and public names that have
// all words of the query. search_index.js, which pages.py writes, is loaded when the field gets the focus first. It is a
// script and no JSON file, because a page that is opened from a disk may not read other files.
'use strict';

const site = document.currentScript.src.replace(/search\.js$/, '');
const field = document.createElement('input'), list = document.createElement('div');
let index;  // undefined until the field had the focus; then a promise of entries
let chosen = -1;

// How well `word` matches `text`: whole words count most, beginnings of words more than other places; 0 without a match.
function match(text, word) {
  let best = 0;
  for (let at = text.indexOf(word); at >= 0 && best < 4; at = text.indexOf(word, at + 1)) {
    const begins = !/\w/.test(text[at - 1] || ''), ends = !/\w/.test(text[at + word.length] || '');
    best = Math.max(best, begins && ends ? 4 : begins ? 2 : 1);
  }
  return best;
}

// The entries that have every word of the query in heading, page title or text, best first.
function find(entries, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean), phrase = words.join(' ');
  if (!words.length) return [];
  const found = [];
  for (const entry of entries) {
    let score = 0;
    for (const word of words) {
      const of_word = 6 * match(entry.lower.heading, word) + 2 * match(entry.lower.page, word) + match(entry.lower.text, word);
      if (!of_word) { score = 0; break; }
      score += of_word;
    }
    if (!score) continue;
    if (entry.lower.heading === phrase) score += 20 * words.length;
    else if (words.length > 1 && (entry.lower.heading + ' ' + entry.lower.text).includes(phrase)) score += 10;
    found.push({entry, score: score * entry.weight});
  }
  return found.sort((a, b) => b.score - a.score).map(f => f.entry);
}

function load() {
  index ||= new Promise(resolve => {
    const script = document.createElement('script');
    script.src = site + 'search_index.js';
    script.onload = () => resolve(searchIndex.map(([url, page, heading, text, weight]) => ({url, page, heading, text, weight,
      lower: {page: page.toLowerCase(), heading: heading.toLowerCase(), text: text.toLowerCase()}})));
    script.onerror = () => { index = undefined; resolve([]); };  // the next search tries again
    document.head.append(script);
  });
  return index;
}

// Adds `text` to `parent`, with the words of the query marked.
function add_marked(parent, text, words) {
  const pattern = new RegExp('(' + words.map(w => w.replace(/[^\w\s]/g, '\\$&')).join('|') + ')', 'gi');
  text.split(pattern).forEach((part, i) => {
    if (i % 2) parent.appendChild(document.createElement('mark')).textContent = part;
    else parent.append(part);
  });
}

// The part of the text around the first word of the query that the text has.
function excerpt(entry, words) {
  const at = Math.max(0, entry.lower.text.indexOf(words.find(w => entry.lower.text.includes(w))));
  const begin = at < 60 ? 0 : entry.text.indexOf(' ', at - 50) + 1;
  const end = entry.text.length <= begin + 180 ? entry.text.length : entry.text.lastIndexOf(' ', begin + 160);
  return (begin ? '… ' : '') + entry.text.slice(begin, Math.max(end, begin + 80)) + (end < entry.text.length ? ' …' : '');
}

function choose(i) {
  const options = list.querySelectorAll('a');
  options[chosen]?.removeAttribute('aria-selected');
  chosen = options.length ? (i + options.length) % options.length : -1;
  options[chosen]?.setAttribute('aria-selected', 'true');
  options[chosen]?.scrollIntoView({block: 'nearest'});
  field.setAttribute('aria-activedescendant', options[chosen]?.id || '');
}

function close() {
  list.hidden = true;
  field.setAttribute('aria-expanded', 'false');
}

async function show() {
  const query = field.value.trim(), words = query.toLowerCase().split(/\s+/);
  if (!query) return close();
  const found = find(await load(), query);
  if (query !== field.value.trim()) return;  // another query was typed meanwhile
  list.replaceChildren();
  found.slice(0, 20).forEach((entry, i) => {
    const option = list.appendChild(document.createElement('a'));
    option.href = site + entry.url;
    option.id = 'found-' + i;
    option.setAttribute('role', 'option');
    add_marked(option.appendChild(document.createElement('b')), entry.heading, words);
    if (entry.page !== entry.heading) option.appendChild(document.createElement('i')).textContent = entry.page;
    if (entry.text) add_marked(option.appendChild(document.createElement('span')), excerpt(entry, words), words);
  });
  if (!found.length) list.append(`No page has all words of "${query}".`);
  list.hidden = false;
  list.scrollTop = 0;
  field.setAttribute('aria-expanded', 'true');
  chosen = -1;
  choose(0);
}

field.type = 'search';
field.placeholder = 'Search';
field.title = 'Press / to search';
for (const [name, value] of Object.entries({'aria-label': 'Search the guide', role: 'combobox', 'aria-expanded': 'false',
                                            'aria-controls': 'found', autocomplete: 'off', spellcheck: 'false'}))
  field.setAttribute(name, value);
list.id = 'found';
list.setAttribute('role', 'listbox');
list.hidden = true;
document.querySelector('header').append(field, list);

field.addEventListener('focus', load);
field.addEventListener('input', show);
field.addEventListener('focus', show);
field.addEventListener('keydown', event => {
  if (event.key === 'ArrowDown') choose(chosen + 1);
  else if (event.key === 'ArrowUp') choose(chosen - 1);
  else if (event.key === 'Enter' && !list.hidden) list.querySelectorAll('a')[chosen]?.click();
  else if (event.key === 'Escape') { close(); field.blur(); }
  else return;
  event.preventDefault();
});
list.addEventListener('click', close);  // a result on the same page does not load a page
document.addEventListener('keydown', event => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea')) return;
  event.preventDefault();
  field.focus();
  field.select();
});
document.addEventListener('click', event => {
  if (!list.contains(event.target) && event.target !== field) close();
});
