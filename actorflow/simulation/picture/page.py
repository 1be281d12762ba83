"""How is a picture looked at in a browser?

As one file that needs nothing else: the SVG, a few words on how to move about in it, and the journal as a timeline.
What one points at is told beside the pointer; the picture can be moved and made larger.  Without its script the page
shows the same picture and the same journal.
"""

from __future__ import annotations

from collections.abc import Sequence

from actorflow.model.journal import Line
from actorflow.simulation.picture.canvas import FONT, clean
from actorflow.simulation.timeline import timeline

__all__ = ("page",)

MOST_LINES = 4_000
"""So many entries of the journal are on the page at most."""

_STYLE = f"""
:root {{ color-scheme: light dark;
  --ground: #f4f6fa; --ink: #1b2033; --muted: #5b6478; --card: #ffffff; --rule: #dfe3ec }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ground: #090c12; --ink: #e7eaf3; --muted: #a3acc2; --card: #0f131c; --rule: #2b3347 }}
}}
body {{ margin: 0; padding: 20px; background: var(--ground); color: var(--ink); font: 14px/1.5 {FONT} }}
figure {{ margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 12px; overflow: hidden }}
figure svg {{ display: block; width: 100%; height: auto; touch-action: pan-x pan-y }}
figure svg.large {{ cursor: grab; touch-action: none }}
p {{ color: var(--muted); margin: 10px 4px }}
button {{ font: inherit; color: inherit; background: var(--card); border: 1px solid var(--rule); border-radius: 7px;
  padding: 1px 11px; margin-right: 4px; cursor: pointer }}
#tip {{ position: fixed; pointer-events: none; background: var(--ink); color: var(--ground); border-radius: 7px;
  padding: 5px 9px; font-size: 12px; line-height: 1.4; max-width: 46ch; white-space: pre-line; display: none }}
details {{ margin-top: 14px }}
summary {{ cursor: pointer; font-weight: 600 }}
pre {{ font: 11.5px/1.5 ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; overflow-x: auto;
  background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 12px }}
.scripted {{ display: none }}
"""

_SCRIPT = """
(() => {
  const svg = document.querySelector('figure svg'), tip = document.getElementById('tip');
  const whole = svg.viewBox.baseVal, full = [whole.x, whole.y, whole.width, whole.height];
  let view = full.slice(), held = null;
  document.querySelectorAll('.scripted').forEach(one => one.style.display = 'block');
  const told = new WeakMap();
  svg.querySelectorAll('title').forEach(title => { told.set(title.parentNode, title.textContent); title.remove(); });
  const show = () => {
    svg.setAttribute('viewBox', view.join(' '));
    svg.classList.toggle('large', view[2] < full[2] - 1);
  };
  const point = event => {
    const box = svg.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  const zoom = (by, [x, y]) => {
    const wide = Math.min(full[2], Math.max(full[2] / 24, view[2] * by)), part = wide / view[2];
    move(view[0] + x * view[2] * (1 - part), view[1] + y * view[3] * (1 - part), wide, view[3] * part);
  };
  const move = (x, y, wide, high) => {
    view = [Math.max(0, Math.min(x, full[2] - wide)), Math.max(0, Math.min(y, full[3] - high)), wide, high];
    show();
  };
  svg.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 300), point(event));
  }, { passive: false });
  svg.addEventListener('pointerdown', event => { held = [point(event), view.slice()]; });
  window.addEventListener('pointerup', () => { held = null; });
  svg.addEventListener('pointermove', event => {
    const [x, y] = point(event);
    if (held && event.buttons) {
      move(held[1][0] - (x - held[0][0]) * view[2], held[1][1] - (y - held[0][1]) * view[3], view[2], view[3]);
    }
    let one = event.target;
    while (one && one !== svg && !told.has(one)) one = one.parentNode;
    const text = one && told.get(one);
    tip.style.display = text ? 'block' : 'none';
    if (!text) return;
    tip.textContent = text;
    const left = event.clientX + 14 + tip.offsetWidth > innerWidth ? event.clientX - 14 - tip.offsetWidth
      : event.clientX + 14;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 6) + 'px';
  });
  svg.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
  svg.addEventListener('dblclick', event => { zoom(0.5, point(event)); });
  const middle = [0.5, 0.5];
  const acts = { larger: () => zoom(0.7, middle), smaller: () => zoom(1 / 0.7, middle),
    whole: () => { view = full.slice(); show(); } };
  document.querySelectorAll('button').forEach(one => one.addEventListener('click', acts[one.dataset.act]));
  window.addEventListener('keydown', event => {
    const [x, y, wide, high] = view, act = { '+': 'larger', '-': 'smaller', 0: 'whole' }[event.key];
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (act) acts[act]();
    else if (way && wide < full[2] - 1) {
      event.preventDefault();
      move(x + way[0] * wide / 8, y + way[1] * high / 8, wide, high);
    }
  });
})();
"""


def page(title: str, drawn: str, lines: Sequence[Line]) -> str:
    """Put an SVG and its journal on a page of its own."""
    told = lines[:MOST_LINES]
    journal = "\n".join(clean(text) for text in timeline(told))
    more = f"\n… and {len(lines) - len(told):,} more" if len(lines) > len(told) else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{clean(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<figure>
{drawn}</figure>
<p class="scripted"><button data-act="larger">+</button><button data-act="smaller">−</button>
<button data-act="whole">whole</button> Rest on anything to read what it is.  Ctrl and the wheel, a double click or
+ and − change the size; drag or use the arrows to move.</p>
<details>
<summary>The journal, {len(lines):,} entries</summary>
<pre>{journal}{more}</pre>
</details>
<div id="tip"></div>
<script>{_SCRIPT}</script>
</body>
</html>
"""
