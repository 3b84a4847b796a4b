// What the page of a match can do where scripts run: a map to zoom, move and point at, and lists to search. Without
// scripts the page shows the same map and lists. tests/cli/command/test_report.py says what the hash must be.
#pragma once

#include "report/html.hpp"

namespace vicinal::cli::report {

inline constexpr Script kMapScript = {
    R"js(
(() => {
const atlas = document.querySelector('.atlas'), frame = atlas.querySelector('.view'), svg = frame.querySelector('svg');
const tip = frame.querySelector('.tip'), mark = svg.querySelector('.mark');
const whole = svg.getAttribute('viewBox').split(' ').map(Number);
let view = whole;

function show(x, y, width) {
  const w = Math.min(whole[2], Math.max(whole[2] / 400, width)), h = w * whole[3] / whole[2];
  const within = (at, low, room) => Math.min(low + room, Math.max(low, at));
  view = [within(x, whole[0], whole[2] - w), within(y, whole[1], whole[3] - h), w, h];
  svg.setAttribute('viewBox', view.map(value => +value.toFixed(2)).join(' '));
  svg.style.touchAction = w < whole[2] ? 'none' : 'pan-y';
}
const at = (x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM().inverse());
const zoom = (factor, to) => {
  const f = view[2] / Math.min(whole[2], Math.max(whole[2] / 400, view[2] / factor));
  show(to.x - (to.x - view[0]) / f, to.y - (to.y - view[1]) / f, view[2] / f);
};
const middle = () => ({x: view[0] + view[2] / 2, y: view[1] + view[3] / 2});

svg.addEventListener('wheel', event => {
  if (event.deltaY > 0 && view[2] >= whole[2]) return;  // the page scrolls on
  event.preventDefault();
  zoom(2 ** (-event.deltaY * (event.deltaMode ? 20 : 1) / 250), at(event.clientX, event.clientY));
}, {passive: false});

// One pointer moves the map, two of them pinch it.
const down = new Map();
const grip = () => {
  const [a, b = a] = down.values();
  return {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, size: Math.hypot(a.x - b.x, a.y - b.y)};
};
svg.addEventListener('pointerdown', event => {
  if (event.button === 0) down.set(event.pointerId, {x: event.clientX, y: event.clientY});
});
addEventListener('pointermove', event => {
  if (!event.buttons) down.delete(event.pointerId);  // it was lifted outside the window
  if (!down.has(event.pointerId)) return;
  const before = grip(), from = at(before.x, before.y);
  down.set(event.pointerId, {x: event.clientX, y: event.clientY});
  const after = grip(), to = at(after.x, after.y);
  show(view[0] + from.x - to.x, view[1] + from.y - to.y, view[2]);
  if (before.size && after.size) zoom(after.size / before.size, at(after.x, after.y));
});
for (const name of ['pointerup', 'pointercancel']) addEventListener(name, event => down.delete(event.pointerId));

frame.addEventListener('keydown', event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
  if (move) show(view[0] + move[0] * view[2] / 8, view[1] + move[1] * view[3] / 8, view[2]);
  else if (event.key === '+' || event.key === '=') zoom(1.5, middle());
  else if (event.key === '-') zoom(1 / 1.5, middle());
  else if (event.key === '0') show(...whole);
  else return;
  event.preventDefault();
});
atlas.querySelector('.tools').addEventListener('click', event => {
  const factor = Number(event.target.dataset.zoom);
  if (factor) zoom(factor, middle());
  else if (factor === 0) show(...whole);
});

// Names: texts that browsers show after a while are shown at once.
for (const title of svg.querySelectorAll('path > title')) {
  title.parentNode.dataset.name = title.textContent;
  title.remove();
}
svg.addEventListener('pointermove', event => {
  const name = event.target.dataset.name, box = frame.getBoundingClientRect();
  tip.hidden = !name;
  tip.textContent = name || '';
  tip.style.left = Math.max(0, Math.min(event.clientX - box.left + 14, box.width - tip.offsetWidth - 8)) + 'px';
  tip.style.top = Math.max(0, Math.min(event.clientY - box.top + 14, box.height - tip.offsetHeight - 8)) + 'px';
});
svg.addEventListener('pointerleave', () => { tip.hidden = true; });

// Lists: what is chosen is marked and shown with what lies around it.
function choose(item) {
  const [x, y, w, h] = item.dataset.box.split(' ').map(Number);
  const width = 3 * Math.max(w, h * whole[2] / whole[3], whole[2] / 300);
  for (const [name, value] of Object.entries({x, y, width: w, height: h})) mark.setAttribute(name, value);
  mark.classList.add('marked');
  show(x + w / 2 - width / 2, y + h / 2 - width * whole[3] / whole[2] / 2, width);
  frame.scrollIntoView({block: 'nearest'});
}
for (const list of document.querySelectorAll('.changes')) {
  const items = [...list.querySelectorAll('li')], texts = items.map(item => item.textContent.toLowerCase());
  const input = list.querySelector('input'), status = list.querySelector('[role=status]');
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/);
    items.forEach((item, i) => { item.hidden = !words.every(word => texts[i].includes(word)); });
    status.textContent = items.filter(item => !item.hidden).length + ' of ' + items.length;
  });
  for (const item of items) {
    if (!item.dataset.box) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...item.childNodes);
    button.addEventListener('click', () => choose(item));
    item.append(button);
  }
}
document.documentElement.classList.add('live');
show(...whole);
})();
)js",
    "ECxmR/WtgE8zxV/T1J7NxvpQOIX/kmJQM+dxif640rw="};

}  // namespace vicinal::cli::report
