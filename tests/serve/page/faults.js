// What is wrong with the page as it is now: widths, names of controls, headings, contrast. An expression: a list of texts.
(() => {
  const LEAST = 4.5; // contrast of text to what is behind it (WCAG 2.2, 1.4.3)
  const found = [], shown = e => e.checkVisibility() && e.getClientRects().length;
  const told = e => `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''}.${e.getAttribute('class') || ''} "${
    (e.textContent || '').trim().slice(0, 40)}"`;
  const elements = [...document.querySelectorAll('body *')].filter(shown);
  // Widths; innerWidth of a phone grows with what is too wide
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1) {
    const wide = elements.filter(e => e.getBoundingClientRect().right > width + 1 && !e.closest('.scroll'));
    found.push(`the page is ${document.documentElement.scrollWidth} wide on ${width}: ${wide.slice(0, 3).map(told)}`);
  }
  // Names
  const nameOf = e => (e.getAttribute('aria-label') || (e.getAttribute('aria-labelledby') || '').split(' ').map(
    id => (document.getElementById(id) || {}).textContent || '').join('') || [...(e.labels || [])].map(
    l => l.textContent).join('') || (e.matches('a, button, summary, [role=button]') && e.textContent) || '').trim();
  for (const e of elements) {
    if (e.matches('input, select, textarea, button, a[href], summary, [role=button], [role=region], progress, svg[role=img]')
        && !nameOf(e)) found.push(`has no name: ${told(e)}`);
    if (e.matches('img') && !e.hasAttribute('alt')) found.push(`has no alternative text: ${told(e)}`);
    if (e.matches('svg[role=img]') && !e.querySelector('title')) found.push(`has no title: ${told(e)}`);
    if (e.tabIndex > 0) found.push(`changes the order of the keyboard: ${told(e)}`);
    if (e.matches('.scroll') && e.tabIndex < 0) found.push(`cannot be scrolled by the keyboard: ${told(e)}`);
    if (e.matches('button, input:not([type=checkbox]):not([type=radio]), select')
        && e.getBoundingClientRect().height < 24) found.push(`is smaller than 24 pixels: ${told(e)}`);
  }
  // Texts and controls over one another
  const lone = elements.filter(e => !(e instanceof SVGElement) && !e.closest('.scroll, .unseen, .skip, svg, option, footer')
    && (e.matches('button, input, select, textarea, progress') || [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())));
  const boxes = lone.flatMap(e => [...e.getClientRects()].map(box => [e, box]));
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 4 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5;
  boxes.slice(0, 600).forEach(([e, box], i) => boxes.slice(i + 1, 600).forEach(([f, other]) => {
    if (e !== f && overlap(box, other) && !e.contains(f) && !f.contains(e)) found.push(`${told(e)} and ${told(f)} lie over one another`);
  }));
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  if (twice.length) found.push(`the same id twice: ${twice}`);
  const levels = [...document.querySelectorAll('h1, h2, h3, h4')].filter(shown).map(e => Number(e.tagName[1]));
  if (levels.filter(level => level === 1).length !== 1) found.push('there is not exactly one h1');
  levels.forEach((level, i) => { if (i && level > levels[i - 1] + 1) found.push(`a heading jumps to h${level}`); });
  // Contrast
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = text => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = '#000'; canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1); const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3]));
  const behind = e => { const layers = []; for (let p = e; p; p = p.parentElement) layers.push(rgba(
    getComputedStyle(p).backgroundColor)); return layers.reduceRight((under, top) => over(top, under),
    rgba(getComputedStyle(document.documentElement).colorScheme.includes('dark')
      && matchMedia('(prefers-color-scheme: dark)').matches ? '#121212' : '#ffffff').slice(0, 3)); };
  const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  for (const e of elements) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.matches('input, select, textarea');
    if (!own || e.disabled || e.closest('[disabled], [aria-hidden=true], .unseen, title, desc, noscript, option')) continue;
    const style = getComputedStyle(e), under = behind(e);
    const ink = over(rgba(e instanceof SVGElement ? style.fill : style.color), under);
    const [a, b] = [light(ink), light(under)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    if (ratio < LEAST) found.push(`contrast ${ratio.toFixed(2)}: ${told(e)}`);
  }
  return found;
})()
