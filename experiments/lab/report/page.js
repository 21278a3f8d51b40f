(() => {
  const own = [...document.querySelectorAll('[data-of]')], box = document.getElementById('filter');
  if (box) {
    box.hidden = false;
    box.addEventListener('input', e => {
      const words = e.target.value.toLowerCase().split(/[\s,]+/).filter(w => w);
      for (const el of own) el.classList.toggle('off', words.length > 0 && !words.some(w => el.dataset.of.toLowerCase().includes(w)));
    });
  }
  for (const svg of document.querySelectorAll('svg')) {
    const parts = [...svg.querySelectorAll('[data-of]')];
    svg.addEventListener('pointerover', e => {
      const at = e.target.closest('[data-of]');
      for (const el of parts) el.classList.toggle('beside', at !== null && el.dataset.of !== at.dataset.of);
    });
    svg.addEventListener('pointerleave', () => parts.forEach(el => el.classList.remove('beside')));
  }
  // Cells with numbers come before cells with text, in both directions. A cell that begins with a letter is text.
  const key = cell => {
    const text = cell ? cell.textContent.trim() : '', number = /^[-+±>\s]*[0-9.]/.test(text) ? parseFloat(text.replace(/^[±>\s]+/, '')) : Infinity;
    return Number.isFinite(number) ? [0, number] : [1, text];
  };
  const order = (a, b, sign) => a[0] - b[0] || sign * (a[0] ? a[1].localeCompare(b[1]) : a[1] - b[1]);
  for (const table of document.querySelectorAll('table.results')) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    table.classList.add('sorts');
    let column = 0;
    for (const head of heads) {
      const at = column;
      column += head.colSpan;
      head.tabIndex = 0;
      head.title = 'sort';
      const sort = () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        for (const h of heads) h.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        const rows = [...body.rows].filter(r => !r.classList.contains('chance'));
        rows.sort((a, b) => order(key(a.cells[at]), key(b.cells[at]), down ? -1 : 1));
        for (const r of rows) { r.classList.remove('rule'); body.append(r); }
      };
      head.addEventListener('click', sort);
      head.addEventListener('keydown', e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); sort(); } });
    }
  }
})();
