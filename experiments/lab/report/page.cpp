#include "experiments/lab/report/page.h"

#include <fmt/format.h>

#include "experiments/lab/plot/text.h"

namespace plumb::lab {
namespace {

constexpr const char* page_css = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f23;--muted:#5b636b;--grid:#e3e6e9;--panel:#f6f7f8;--bad:#a3231f;--warn:#7a5600;--shade:#0003}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e4e7ea;--muted:#a0a8b0;--grid:#30363c;--panel:#1c2024;--bad:#ff9a92;--warn:#e8c060;--shade:#fff3}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:1080px;padding:2.2rem 1.25rem 4rem;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans","DejaVu Sans",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 1rem;letter-spacing:-.01em}
h2{font-size:1.15rem;line-height:1.3;margin:2.8rem 0 .5rem}
p{margin:.4rem 0;max-width:46rem}
.verdict{font-size:1.12rem;line-height:1.5;margin:0 0 .6rem}
.verdicts{margin:.2rem 0 0;padding-left:1.1rem;max-width:46rem}
.verdicts li{margin:.25rem 0}
.caption{color:var(--muted);font-size:.9rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:0 2.2rem;margin:.6rem 0 0}
.facts div{display:grid;grid-template-columns:8.5rem 1fr;gap:.8rem;padding:.32rem 0;border-bottom:1px solid var(--grid);font-size:.92rem}
.facts .long{grid-column:1/-1}
.facts dt{color:var(--muted)}
.facts dd{margin:0;font-variant-numeric:tabular-nums}
.facts.notes{grid-template-columns:1fr}
.scroll{overflow-x:auto;margin:.8rem 0 .4rem;background:linear-gradient(to left,var(--paper) 1.6rem,transparent) right/3.2rem 100% no-repeat local,linear-gradient(to left,var(--shade),transparent) right/1.1rem 100% no-repeat scroll}
.results td:first-child,.results th:first-child{position:sticky;left:0;background:var(--paper)}
table.results{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums;white-space:nowrap}
.results th{font-weight:600;text-align:left;border-bottom:1.5px solid var(--ink);padding:.3rem .9rem .3rem 0;vertical-align:bottom}
.results td{padding:.24rem .9rem .24rem 0}
.results .num{text-align:right}
.results td.num:has(+.interval){padding-right:.35rem}
.results .interval{color:var(--muted);padding-right:1.1rem}
.results tr.rule td{border-top:1px solid var(--grid)}
.results tr.chance td{color:var(--muted);border-bottom:1px solid var(--grid)}
.results tbody tr:last-child td{border-bottom:1px solid var(--ink)}
.results td.outcome{white-space:normal;min-width:11rem}
.results td.long{white-space:normal;min-width:14rem}
.results .bad{color:var(--bad)}
.results .warn{color:var(--warn)}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,27rem),1fr));gap:1.8rem 2.4rem;margin:1rem 0 0;align-items:start}
.plot{display:block;width:100%;height:auto;overflow:visible;font-family:inherit;font-size:13px;font-variant-numeric:tabular-nums}
.results th[aria-sort]{text-decoration:underline;text-underline-offset:.2em}
.sorts th{cursor:pointer}
.sorts th:hover{text-decoration:underline dotted;text-underline-offset:.2em}
#filter{margin:1.2rem 0 0}
#filter input{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--muted);border-radius:.3rem;padding:.15rem .5rem}
tr.off{display:none}
svg .off{opacity:.08}
svg .beside{opacity:.25}
footer{margin-top:3rem;color:var(--muted);font-size:.85rem}
@media (max-width:520px){body{padding:1.3rem 1rem 3rem}h1{font-size:1.4rem}.plot{font-size:14.5px}.facts div{grid-template-columns:7rem 1fr}}
.pictures{display:flex;flex-wrap:wrap;gap:0 2rem}.picture{margin:0 0 1rem}.picture img{display:block;max-width:none}.picture figcaption{position:sticky;left:0;font-size:.9rem;color:var(--muted)}
@media print{body{max-width:none;padding:0}.plots svg,.results tr{break-inside:avoid}.scroll{overflow:visible}}
)css";

// Without a less-than sign, so that tags are all that begins with one.
constexpr const char* page_script = R"js(
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
  // Numbers, then texts, whichever way; a cell that only begins with letters is a text.
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
)js";

}  // namespace

std::string page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{3}<script>{4}</script>\n</body>\n</"
      "html>\n",
      escape_markup(title), page_css, plot_css(), body, page_script);
}

std::string facts(const NamedTexts& texts, const char* extra) {
  std::string html = fmt::format(R"(<dl class="facts{}">)", extra);
  for (const auto& [name, value] : texts)
    html += fmt::format("<div{}><dt>{}</dt><dd>{}</dd></div>", letters(value) > 60 ? " class=\"long\"" : "",
                        escape_markup(name), escape_markup(value));
  return html + "</dl>\n";
}

std::string section(const std::string& title, const std::string& caption, const std::string& body) {
  return fmt::format("<section>\n<h2>{}</h2>\n<p class=\"caption\">{}</p>\n{}</section>\n", title, caption, body);
}

std::string grid(const std::vector<std::string>& svgs) {
  std::string html = "<div class=\"plots\">\n";
  for (const std::string& svg : svgs) html += svg + "\n";
  return html + "</div>\n";
}

std::string filter(const std::string& what, std::size_t count) {
  constexpr std::size_t few = 6;  // a glance finds one of these
  if (count <= few) return "";
  return fmt::format(
      "<p id=\"filter\" hidden><label>Show only <input type=\"search\" placeholder=\"parts of names\" "
      "size=\"24\"></label> "
      "<span class=\"caption\">of {}, by {}</span></p>\n",
      count, escape_markup(what));
}

std::string scroll_region(const std::string& label, const std::string& table) {
  return fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">{}</div>\n",
                     escape_markup(label), table);
}

}  // namespace plumb::lab
