// Measures report pages in frames; report_page.py puts it into a page and reads what it finds.
'use strict';

const parse = color => (color.match(/[\d.]+/g) || []).map(Number);
const visible = color => { const c = parse(color); return c.length === 3 || c[3] > 0; };

/// The color behind an element: that of the nearest one around it that has any.
function paper(window, element) {
  for (let at = element.parentElement; at; at = at.parentElement) {
    const color = window.getComputedStyle(at).backgroundColor;
    if (visible(color)) return color;
  }
  return 'none';
}

function measure(window) {
  const document = window.document, root = document.documentElement, faults = [];
  const style = element => window.getComputedStyle(element);
  const named = element => element.tagName.toLowerCase() + '.' + (element.getAttribute('class') || '');
  const scrolls = element => /auto|scroll/.test(style(element).overflowX);
  const inScroll = element => {
    for (let at = element; at && at !== document.body; at = at.parentElement) if (scrolls(at)) return true;
    return false;
  };
  const say = (what, element) => { if (faults.length < 40) faults.push(what + ' ' + element); };
  if (root.scrollWidth > root.clientWidth) say('the page is wider than its frame:', root.scrollWidth);

  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg') && e.tagName.toLowerCase() !== 'svg' || e.closest('script')) continue;
    const overflows = e.clientWidth > 0 && e.scrollWidth > e.clientWidth;
    if (overflows && !scrolls(e) && e.tagName !== 'INPUT') say('overflows:', named(e));
    const box = e.getBoundingClientRect();
    const outside = box.right > root.clientWidth + 0.5 || box.left < -0.5;
    if (outside && !inScroll(e.parentElement)) say('outside the page:', named(e));
  }
  for (const s of document.querySelectorAll('svg[role]')) {
    const out = s.getBoundingClientRect();
    if (!(out.width > 0 && out.height > 0)) say('of no size:', named(s));
    if (!s.getAttribute('aria-label')) say('without a label:', named(s));
    for (const e of s.querySelectorAll('text, rect, circle, path, polygon, polyline')) {
      const box = e.getBoundingClientRect();
      if (box.width + box.height === 0) continue;
      if (box.left < out.left - 1 || box.right > out.right + 1 || box.top < out.top - 1 || box.bottom > out.bottom + 1)
        say('outside its drawing:', named(e) + ' ' + e.textContent.slice(0, 40));
    }
  }
  // Texts within their cards.
  const walker = document.createTreeWalker(document.body, window.NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest('script, style')) continue;
    if (/\d \d{3}(?!\d)/.test(node.data)) say('a number that could break:', node.data.slice(0, 60));
    if (/(^|\D)0 most outlying/.test(node.data)) say('nothing counted:', node.data.slice(0, 60));
    const card = parent.closest('.card, section, .facts, .hero, header, footer');
    if (parent.closest('svg') || !card || inScroll(parent)) continue;
    const out = card.getBoundingClientRect();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      // The largest numbers are higher than their lines.
      const high = card.className === 'hero' ? 20 : 2;
      const beside = box.left < out.left - 0.5 || box.right > out.right + 0.5;
      if (beside || box.top < out.top - high || box.bottom > out.bottom + high)
        say('text outside its card:', node.data.slice(0, 60));
    }
  }
  // Legends: each entry with swatches that can be seen.
  const legend = {};
  for (const entry of document.querySelectorAll('.key > span')) {
    const swatches = entry.querySelectorAll('i');
    if (!swatches.length) say('a legend entry without a swatch:', entry.textContent);
    for (const swatch of swatches) {
      const color = style(swatch).backgroundColor, box = swatch.getBoundingClientRect();
      legend[entry.textContent.trim()] = color;
      if (!visible(color) || color === paper(window, swatch)) say('a swatch that is not seen:', entry.textContent);
      if (box.width < 8 || box.height < 8) say('a small swatch:', entry.textContent);
    }
  }
  for (const image of document.images) {
    if (!(image.complete && image.naturalWidth > 0)) say('an image not shown:', image.alt);
    if (!image.alt) say('an image without a text:', named(image));
  }
  for (const e of document.querySelectorAll('input, button')) {
    if (!(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.textContent) say('no name:', named(e));
  }
  // Cards beside each other are of equal height.
  for (const group of document.querySelectorAll('.pair, .cards')) {
    const heights = {};
    for (const card of group.children) {
      const box = card.getBoundingClientRect(), row = Math.round(box.top);
      if (Math.abs((heights[row] ?? box.height) - box.height) > 1) say('cards of unequal height:', named(group));
      heights[row] = box.height;
    }
  }
  // Headline numbers are beside each other where there is room, and whole.
  for (const hero of document.querySelectorAll('.hero')) {
    let last = -1;
    for (const figure of hero.children) {
      const box = figure.getBoundingClientRect();
      if (root.clientWidth > 1000 && box.left <= last) say('a headline number on another line:', figure.textContent);
      last = box.left;
      const number = figure.querySelector('b, .big');
      range.selectNodeContents(number);
      const lines = new Set(Array.from(range.getClientRects(), line => Math.round(line.bottom / 24)));
      if (number.tagName === 'B' && lines.size > 1) say('a headline number of two lines:', figure.textContent);
    }
  }
  const controls = [...document.querySelectorAll('.atlas label, .atlas button')]
    .filter(control => control.getBoundingClientRect().height > 0).map(control => control.textContent);
  return {faults, legend, controls, width: root.clientWidth, paper: style(document.body).backgroundColor,
    scheme: style(root).colorScheme};
}

/// What the map of a match does: wheel, drag, pinch, keys, names on hover and the search.
function drive(window) {
  const document = window.document, svg = document.querySelector('.view svg');
  const box = svg.getBoundingClientRect(), x = box.left + box.width / 4, y = box.top + box.height / 4;
  const found = {}, view = () => svg.getAttribute('viewBox').split(' ').map(Number);
  const pointer = (type, id, dx, dy, buttons = 1) => svg.dispatchEvent(
    new window.PointerEvent(type, {pointerId: id, clientX: x + dx, clientY: y + dy, buttons, bubbles: true}));
  const wheel = deltaY => {
    const event = new window.WheelEvent('wheel', {deltaY, clientX: x, clientY: y, bubbles: true, cancelable: true});
    svg.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const key = name => svg.parentElement.dispatchEvent(
    new window.KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true}));
  found.whole = view();
  found.outAtWhole = wheel(100);
  found.inAtWhole = wheel(-100);
  found.wheel = view();
  pointer('pointerdown', 1, 0, 0);
  pointer('pointermove', 1, -20, -10);
  pointer('pointerup', 1, -20, -10);
  found.drag = view();
  found.pixel = 1 / svg.getScreenCTM().a;
  pointer('pointerdown', 1, -30, 0);
  pointer('pointerdown', 2, 30, 0);
  pointer('pointermove', 2, 90, 0);
  pointer('pointerup', 2, 90, 0);
  pointer('pointerup', 1, -30, 0);
  found.pinch = view();
  pointer('pointerdown', 1, 0, 0);
  pointer('pointermove', 1, 50, 50, 0);
  pointer('pointermove', 1, 90, 90);
  found.lifted = view();
  key('ArrowRight');
  found.right = view();
  key('+');
  found.plus = view();
  key('0');
  found.reset = view();
  document.querySelector('.atlas button[data-zoom="2"]').click();
  found.button = view();
  key('0');
  // Names.
  const shape = svg.querySelector('[data-name]'), tip = document.querySelector('.tip');
  shape.dispatchEvent(new window.PointerEvent('pointermove', {clientX: x, clientY: y, bubbles: true}));
  found.name = shape.dataset.name;
  found.tip = tip.hidden ? '' : tip.textContent;
  // The search.
  const list = document.querySelector('.changes'), search = list.querySelector('input[type=search]');
  const items = [...list.querySelectorAll('li')];
  const seen = item => item.getBoundingClientRect().height > 0;
  const shown = () => items.filter(seen).map(item => item.textContent.trim());
  found.all = shown();
  const word = items[items.length - 1].textContent.trim();
  search.value = word.toUpperCase();
  search.dispatchEvent(new window.Event('input', {bubbles: true}));
  found.word = word;
  found.searched = shown();
  found.status = list.querySelector('[role=status]').textContent;
  items[items.length - 1].querySelector('button').click();
  found.chosen = view();
  found.marked = svg.querySelectorAll('.marked').length;
  key('0');
  return found;
}

async function measureAll(frames) {
  const all = [];
  for (const {name, medium, width} of frames) {
    const frame = document.createElement('iframe');
    frame.style = `width:${width}px;height:900px;border:0`;
    frame.src = `${encodeURIComponent(name)}.${medium}.html`;
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    const window = frame.contentWindow;
    let found;
    try {
      found = measure(window);
      const driven = medium === 'light' || medium === 'dark';
      if (driven && window.document.querySelector('.atlas')) found.map = drive(window);
    } catch (error) {
      found = {faults: [String(error.stack || error)]};
    }
    all.push({name, medium, width, found});
    frame.remove();
  }
  document.getElementById('found').textContent = 'MEASURED ' + JSON.stringify(all);
}
